"""A report on four runs that have something of everything, a hostile problem included."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from synthetic_run import Synthetic, make_run

from coda.experiments.report import Contents, Written, gather, write_report

HOSTILE = (
    '</script><script>document.title = "broken out"</script><img src="http://127.0.0.1:9/x" '
    "onerror=\"document.title = 'broken out'\"> {{ 7 * 7 }} <!-- & \u2028 \x00 x"
)
PROBLEMS = 260


@dataclass(frozen=True)
class Reported:
    """A report, what it says, and where its runs are."""

    runs: Path
    contents: Contents
    written: Written


@pytest.fixture(scope="session")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Reported:
    """Four runs of the same problems; the first problem is hostile, and so is the name of the last run."""
    home = tmp_path_factory.mktemp("reported")
    names = {"single": 0.3, "Coda": 0.6, "Compiled": 0.8, "<b>bold & co</b>": 0.5}
    for seed, (name, skill) in enumerate(names.items()):
        made = Synthetic(
            name, PROBLEMS, skill, seed=seed, texts=(HOSTILE,), failing=("p0003",), samples=2 if seed == 3 else 1
        )
        make_run(home / "runs" / name.replace("/", "∕"), made)
    contents = gather([home / "runs"], title="A <i>title</i> & more")
    return Reported(home / "runs", contents, write_report(contents, home / "out"))
