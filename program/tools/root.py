"""The file system that a program sees: an interpreter, its standard library, a few packages, and nothing else.

    /python     the interpreter and its standard library, without installed packages
    /packages   numpy, sympy, mpmath and scipy, those that are installed
    /sandbox    the part of CODA that runs inside
    /lib…       the shared libraries that these need, file by file
    /dev        null, zero, full, random, urandom; /dev/shm leads to /tmp
    /tmp        an empty file system of limited size, new for each program; /tmp/work is the work folder

All but /tmp is read-only, there is no /proc and no /sys, and no path of the host shows.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from coda.program.tools import elf

PACKAGES = ("numpy", "sympy", "mpmath", "scipy", "gmpy2")
PYTHON = "/python"
GUEST = "/sandbox"
_FOR_COMPILED = ("libstdc++.so.6", "libgcc_s.so.1", "libm.so.6", "libc.so.6")
_NOT_USED = ("_curses", "_curses_panel", "_tkinter", "nis", "readline")
_DEVICES = ("null", "zero", "full", "random", "urandom")
_TOOLCHAIN = ("bin", "include", "lib", "lib32", "lib64", "libexec", f"{os.uname().machine}-linux-gnu")
_START = f"import sys; sys.path.insert(0, {GUEST!r}); from coda.program.tools.guest.template import main; main()"


@dataclass(frozen=True)
class Root:
    """A file system for the sandbox.

    Attributes:
        binds: Read-only parts, as ``(source on the host, place inside)``.
        options: Further arguments for bubblewrap, which come after the binds.
        command: What to run inside; takes one argument more.
    """

    binds: tuple[tuple[str, str], ...]
    options: tuple[str, ...]
    command: tuple[str, ...]


@functools.cache
def minimal() -> Root:
    """The file system for programs."""
    python, packages = _python(), _packages()
    folders = [Path(source) for source, _ in (*python, *packages) if Path(source).is_dir()]
    extensions = _extensions([_library() / "lib-dynload", *(Path(source) for source, _ in packages)])
    libraries = elf.closure([_interpreter(), *extensions], folders) | elf.named(_FOR_COMPILED)
    home = _loader_folder(libraries)
    binds = [*python, *packages, *_loader(), *((str(file), f"{home}/{name}") for name, file in libraries.items())]
    return Root(tuple(binds), _options(), _command())


@functools.cache
def toolchain(compiler: str) -> Root:
    """The file system for compilers: the above, and the system's binaries, headers and libraries.

    Args:
        compiler: The compiler's path; what was installed with it comes along.
    """
    prefix = Path(compiler).resolve().parent.parent
    prefixes = dict.fromkeys([Path("/usr"), prefix])
    system = [(str(p / name), str(p / name)) for p in prefixes for name in _TOOLCHAIN if (p / name).is_dir()]
    tops = [Path(f"/{name}") for name in ("bin", "lib", "lib32", "lib64")]
    links = [(str(top), str(top.readlink())) for top in tops if top.is_symlink()]
    real = [(str(top), str(top)) for top in tops if top.is_dir() and not top.is_symlink()]
    python = _python()
    folders = [Path(source) for source, _ in (*system, *real) if Path(source).is_dir()]
    libraries = elf.closure([_interpreter(), *_extensions([_library() / "lib-dynload"])], folders)
    own = [(str(file), f"{PYTHON}/libraries/{name}") for name, file in libraries.items()]
    options = [part for name, target in links for part in ("--symlink", target.lstrip("/"), name)]
    search = ("--setenv", "LD_LIBRARY_PATH", f"{PYTHON}/libraries")
    return Root((*system, *real, *python, *own), (*options, *search, *_options()), _command())


def _interpreter() -> Path:
    return Path(getattr(sys, "_base_executable", None) or sys.executable).resolve()


def _python() -> list[tuple[str, str]]:
    """The interpreter, its standard library, and the part of CODA that runs inside."""
    library = _library()
    guest = Path(__file__).parent / "guest"
    return [
        (str(_interpreter()), f"{PYTHON}/bin/python3"),
        (str(library), f"{PYTHON}/{sys.platlibdir}/{library.name}"),
        (str(guest), f"{GUEST}/coda/program/tools/guest"),
    ]


def _packages() -> list[tuple[str, str]]:
    found = []
    for name in PACKAGES:
        spec = importlib.util.find_spec(name)
        if spec is None or not spec.submodule_search_locations:
            continue
        folder = Path(next(iter(spec.submodule_search_locations)))
        libraries = folder.with_name(f"{name}.libs")
        found += [(str(part), f"/packages/{part.name}") for part in (folder, libraries) if part.is_dir()]
    return found


def _extensions(folders: list[Path]) -> list[Path]:
    found = (file for folder in folders if folder.is_dir() for file in folder.rglob("*.so*"))
    return [file for file in found if file.name.split(".")[0] not in _NOT_USED]


def _loader() -> list[tuple[str, str]]:
    binary = elf.read(_interpreter())
    return [(binary.interpreter, binary.interpreter)] if binary is not None and binary.interpreter else []


def _loader_folder(libraries: dict[str, Path]) -> str:
    """The folder of the C library, where the dynamic linker looks without being told."""
    return next((str(file.parent) for name, file in libraries.items() if name.startswith("libc.")), "/lib")


def _library() -> Path:
    return Path(sysconfig.get_path("stdlib")).resolve()


def _options() -> tuple[str, ...]:
    library = _library()
    hidden = f"{PYTHON}/{sys.platlibdir}/{library.name}/site-packages"
    options = ["--tmpfs", hidden, "--remount-ro", hidden] if (library / "site-packages").is_dir() else []
    for name in _DEVICES:
        options += ["--dev-bind", f"/dev/{name}", f"/dev/{name}"]
    options += ["--symlink", "/tmp", "/dev/shm"]  # noqa: S108 - inside
    return tuple(options)


def _command() -> tuple[str, ...]:
    return (f"{PYTHON}/bin/python3", "-P", "-s", "-S", "-B", "-c", _START)
