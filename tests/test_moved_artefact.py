"""A compiled pipeline that was moved into another environment sends the same messages, byte for byte."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any, get_args

import pytest
from compiled import NASTY, compiled
from local_engine import LocalEngine

from coda.optimize.artifact import Manifest, Policy, save
from coda.program.settings import AdapterStyle

ROOT = Path(__file__).parents[1]
STYLES: tuple[AdapterStyle, ...] = get_args(AdapterStyle)

# Sends every predictor's request for the same inputs to a server, in the program's order.
ASK_ALL = """
import json, sys
from pathlib import Path
import dspy
import coda
from coda.optimize.artifact import load
from coda.program.adapters import adapter_for
from coda.program.concurrency import run_sync
from coda.program.engine import Engine, EngineConfig

folder, server, text = sys.argv[1:]
with Engine(EngineConfig(model="openai/test-model", api_base=server)) as engine:
    program = load(Path(folder), engine=engine)
    for name, predictor in program.named_predictors():
        stage, _, attribute = name.partition(".")
        module = getattr(program, stage)
        inputs = {each: text for each in predictor.signature.input_fields}
        inputs |= {"number_of_paths": 3} if "number_of_paths" in inputs else {}
        with dspy.context(lm=engine.lm, adapter=adapter_for(program.settings.adapter)):
            run_sync(module.ask(getattr(module, attribute), **inputs))
print(coda.__file__)
"""


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with the wheel installed; it borrows the dependencies of this one, and none of its own ``coda``."""
    folder = tmp_path_factory.mktemp("fresh")
    venv.create(folder / "venv", with_pip=False, symlinks=True)
    python = folder / "venv" / "bin" / "python"
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    borrowed = next(path for path in map(Path, sys.path) if path.name == "site-packages")
    (site / "borrowed.pth").write_text(f"import sys; sys.path.append({str(borrowed)!r})\n")
    run(sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", folder / "dist", ROOT)
    [wheel] = (folder / "dist").glob("*.whl")
    run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", wheel)
    return python


def asked(python: Path, folder: Path, cwd: Path) -> tuple[Path, list[dict[str, Any]]]:
    """Where that Python's ``coda`` is, and the bodies of all requests that the pipeline sends there."""
    with LocalEngine("Answer: 42") as server:
        where = run(python, "-c", ASK_ALL, folder, server.api_base, NASTY, cwd=cwd)
        return Path(where.strip()), server.bodies


@pytest.mark.slow
@pytest.mark.parametrize("style", STYLES)
def test_moved_pipeline_sends_the_same_bytes_from_a_fresh_environment(
    fresh: Path, style: AdapterStyle, tmp_path: Path
) -> None:
    program = compiled(style)
    here, there = tmp_path / "here" / "art", tmp_path / "elsewhere" / "moved"
    save(program, here, manifest=Manifest(model="openai/test-model", profile="generic"), policy=Policy())
    _, before = asked(Path(sys.executable), here, ROOT)
    there.parent.mkdir()
    shutil.move(here, there)
    home, after = asked(fresh, there, tmp_path)
    assert home.is_relative_to(fresh.parents[1])
    assert json.dumps(after) == json.dumps(before)
    assert len(after) == len(list(program.named_predictors()))
