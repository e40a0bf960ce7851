"""Programs that want to harm: each is contained, and comes out as its row in the table says."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hostile
import pytest

from coda.program.tools.sandbox import Sandbox

TABLE = Path(__file__).parent / "hostile"
PROGRAMS = hostile.table(TABLE)
PROJECT = Path(__file__).resolve().parents[3]
ORDINARY = 1234

pytestmark = [pytest.mark.sandbox, pytest.mark.xdist_group("hostile")]


@pytest.fixture(scope="module")
def complaints() -> dict[str, str | None]:
    """What is wrong with each program's result; all of them run at once, a few at a time."""
    sandbox = Sandbox(workers=4)
    if not sandbox.available:
        pytest.skip(sandbox.why)
    found = asyncio.run(hostile.run_all(sandbox, PROGRAMS))
    after = sandbox.run_sync("print('unharmed')")
    sandbox.close()
    assert after.stdout == "unharmed\n"
    return {program.name: text for program, text in zip(PROGRAMS, found, strict=True)}


def test_table_holds_at_least_sixty_programs_with_names_of_their_own() -> None:
    assert len(PROGRAMS) >= 60
    assert len({program.name for program in PROGRAMS}) == len(PROGRAMS)


@pytest.mark.parametrize("name", [program.name for program in PROGRAMS])
def test_hostile_program_is_contained(name: str, complaints: dict[str, str | None]) -> None:
    assert complaints[name] is None


@pytest.fixture
def readable_copy() -> Iterator[Path]:
    """The program layer where any user can read it."""
    folder = Path(tempfile.mkdtemp(prefix="coda-copy-"))
    (folder / "coda").mkdir()
    for file in ("__init__.py", "errors.py"):
        shutil.copy(PROJECT / "coda" / file, folder / "coda")
    shutil.copytree(PROJECT / "program", folder / "coda" / "program", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(TABLE, folder / "hostile")
    shutil.copy(hostile.__file__, folder / "run_hostile.py")
    subprocess.run(["chmod", "-R", "a+rX", str(folder)], check=True)
    yield folder
    shutil.rmtree(folder)


def interpreter_for(user: int) -> str | None:
    """An interpreter of this version that the user can execute."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for path in (sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        try:
            done = subprocess.run([path, "-c", ""], user=user, group=user, extra_groups=[], cwd="/", check=False)
        except OSError:
            continue
        if done.returncode == 0:
            return path
    return None


@pytest.mark.skipif(os.geteuid() != 0, reason="the suite runs as an ordinary user already")
def test_hostile_programs_are_contained_for_an_ordinary_user(readable_copy: Path) -> None:
    interpreter = interpreter_for(ORDINARY)
    if interpreter is None:
        pytest.skip("no interpreter of this version that another user can execute")
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    done = subprocess.run(
        [interpreter, str(readable_copy / "run_hostile.py"), str(readable_copy / "hostile")],
        env={"PYTHONPATH": f"{readable_copy}:{packages}", "PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"},
        user=ORDINARY,
        group=ORDINARY,
        extra_groups=[],
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["user"] == ORDINARY
    assert result["programs"] == len(PROGRAMS)
    assert result["wrong"] == {}
