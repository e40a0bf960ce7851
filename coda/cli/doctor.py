"""``coda doctor``: what works on this machine, what is missing, and how to get it."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from coda.cli.console import emit_json, out
from coda.cli.options import Json

if TYPE_CHECKING:
    from coda.program.tools.doctor import Diagnosis, Finding

_LITTLE_DISK = 2 << 30


def doctor(*, json: Json = False) -> int:
    """Show what isolation this machine gives to programs, and the state of the Engine, the caches and the disk.

    Args:
        json: Print one JSON document.
    """
    from coda.program.tools.doctor import examine

    sandbox = examine()
    sections = {"engine": _engine(), "data": _data(), "tracking": _tracking(), "disk": _disk()}
    if json:
        findings = {name: [asdict(finding) for finding in found] for name, found in sections.items()}
        emit_json({"python": sys.version.split()[0], "sandbox": asdict(sandbox), **findings})
        return 0
    _show_sandbox(sandbox)
    for name, found in sections.items():
        out.print(f"\n{name.capitalize()}", style="bold")
        _show(found)
    return 0


def _show_sandbox(sandbox: Diagnosis) -> None:
    out.print(f"Sandbox: {sandbox.level}", style="bold")
    out.print(f"  {sandbox.why}", markup=False)
    _show((*sandbox.layers, *sandbox.tools))


def _show(found: tuple[Finding, ...]) -> None:
    for finding in found:
        mark = "[green]ok[/]     " if finding.works else "[yellow]missing[/]"
        out.print(f"  {mark} {finding.name}: ", end="")
        out.print(finding.detail, markup=False, end="" if finding.remedy else "\n")
        if finding.remedy:
            out.print(f". To mend: {finding.remedy}", markup=False)


def _engine() -> tuple[Finding, ...]:
    from coda.program.engine.weights import folder, installed
    from coda.program.tools.doctor import Finding

    server = importlib.util.find_spec("xllamacpp") is not None
    remedy = "" if server else "pip install 'coda-conductor[embedded]'"
    weights = installed()
    intact = any(item.intact for item in weights)
    state = "intact" if intact else "damaged" if weights else "not here"
    return (
        Finding("embedded Engine", server, "runs a small model in this process (xllamacpp)", remedy),
        Finding("weights", intact, f"{state}, {folder()}", "" if intact else "coda engine pull"),
    )


def _data() -> tuple[Finding, ...]:
    """Where benchmarks from the hub are kept; the `datasets` library decides, and is not loaded to ask it."""
    from coda.program.tools.doctor import Finding

    home = Path(os.environ.get("HF_HOME", Path.home() / ".cache" / "huggingface"))
    cache = Path(os.environ.get("HF_DATASETS_CACHE", home / "datasets"))
    size = sum(file.stat().st_size for file in cache.rglob("*") if file.is_file()) if cache.is_dir() else 0
    return (
        Finding("benchmarks of CODA", True, "words, science and functions come with the package"),
        Finding("hub cache", True, f"{size / 1e6:.0f} MB, {cache}"),
    )


def _tracking() -> tuple[Finding, ...]:
    from coda.program.tools.doctor import Finding

    store = Path("runs") / "mlflow.db"
    state = f"{store.stat().st_size / 1e6:.1f} MB" if store.is_file() else "made by the first run"
    writable = os.access(next(path for path in (store, store.parent, Path()) if path.exists()), os.W_OK)
    remedy = "" if writable else "work in a folder that you may write, or give --tracking-uri"
    return (Finding("MLflow store", writable, f"{state}, {store.absolute()}", remedy),)


def _disk() -> tuple[Finding, ...]:
    from coda.program.engine.weights import folder
    from coda.program.tools.doctor import Finding

    found = []
    for name, place in (("work folder", Path.cwd()), ("user's cache", folder())):
        existing = next(path for path in (place, *place.parents) if path.exists())
        free = shutil.disk_usage(existing).free
        remedy = "" if free > _LITTLE_DISK else "free some space: weights, caches and runs need about 2 GB"
        found.append(Finding(name, free > _LITTLE_DISK, f"{free / 1e9:.1f} GB free, {place}", remedy))
    return tuple(found)
