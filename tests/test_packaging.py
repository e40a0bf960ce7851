"""What is installed: the wheel holds the data files, puts nothing but ``coda`` into site-packages, and works."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("data", "experiments", "optimize", "program", "signatures")


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist, and the wheel that is made from it."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT)
    return folder


def wheel_names(built: Path) -> set[str]:
    [wheel] = built.glob("*.whl")
    return set(zipfile.ZipFile(wheel).namelist())


def test_nothing_but_coda_is_installed(built: Path) -> None:
    tops = {name.split("/")[0] for name in wheel_names(built)}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"coda"}


def test_the_wheel_holds_every_source_and_data_file(built: Path) -> None:
    names = wheel_names(built)
    wanted = {"coda/py.typed"}
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*"):
            if path.suffix in {".py", ".jsonl", ".toml", ".html", ".css", ".js"} and "__pycache__" not in path.parts:
                wanted.add(f"coda/{path.relative_to(ROOT).as_posix()}")
    assert wanted - names == set()
    assert "coda/data/samples/words.jsonl" in names
    assert "coda/program/engine/profiles/generic.toml" in names


def test_the_sdist_holds_no_local_work(built: Path) -> None:
    [sdist] = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        parts = {part for name in archive.getnames() for part in Path(name).parts}
    assert parts & {"runs", ".venv", ".git", "compiled"} == set()


@pytest.mark.parametrize("editable", [False, True])
def test_it_works_from_another_folder_in_an_environment_of_its_own(built: Path, tmp_path: Path, editable: bool) -> None:
    """The environment borrows the dependencies of this one, and none of its own ``coda``."""
    home = tmp_path / "venv"
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin" / "python"
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    borrowed = next(path for path in map(Path, sys.path) if path.name == "site-packages")
    (site / "borrowed.pth").write_text(f"import sys; sys.path.append({str(borrowed)!r})\n")
    [wheel] = built.glob("*.whl")
    source = ["--editable", ROOT] if editable else [wheel]
    options = ["--quiet", "--no-deps", "--no-build-isolation"]
    run(sys.executable, "-m", "pip", "--python", python, "install", *options, *source)
    code = "import coda.cli, coda.data.benchmarks as b; print(coda.__file__); print(len(b.load('words').examples))"
    where, count = run(python, "-c", code, cwd=tmp_path).split()
    assert Path(where).is_relative_to(ROOT if editable else home)
    assert int(count) >= 240
    assert "Usage: coda" in run(home / "bin" / "coda", "--help", cwd=tmp_path)
