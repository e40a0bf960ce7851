"""``coda preset``: how much thought a problem gets, as settings to copy."""

from __future__ import annotations

from coda.cli.console import note, out
from coda.program.presets import ORDER, preset_text


def preset(name: str | None = None) -> int:
    """Print a preset's settings as TOML, to be changed and passed with --settings; without a name, list the presets.

    Args:
        name: Which one.
    """
    if name is not None:
        out.print(preset_text(name).rstrip(), markup=False, highlight=False, soft_wrap=True)
        return 0
    for each in ORDER:
        first = preset_text(each).splitlines()[0].removeprefix("# ")
        out.print(f"{each:<10} {first}", markup=False, highlight=False, soft_wrap=True)
    note("Use one with --preset NAME, or change a copy: coda preset NAME > mine.toml, then --settings mine.toml")
    return 0
