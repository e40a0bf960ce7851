"""Writes ``docs/cli.md`` from the commands' own help; with ``--check`` it says whether the file is stale.

python -m coda.cli.docs [--check] FILE
"""

from __future__ import annotations

import sys
from pathlib import Path

from coda.cli import app


def render() -> str:
    """The whole command line as Markdown."""
    lines = app.generate_docs(recursive=True).splitlines()
    return "\n".join(line.rstrip() for line in lines).strip() + "\n"


def main() -> None:
    """Write the file, or check it."""
    *options, name = sys.argv[1:]
    file, text = Path(name), render()
    if "--check" not in options:
        file.write_text(text, "utf-8")
    elif not file.exists() or file.read_text("utf-8") != text:
        raise SystemExit(f"{file} is stale. Write it anew with: make docs")


if __name__ == "__main__":
    main()
