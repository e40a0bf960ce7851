"""The layers one by one: system-call numbers, libraries, the file system, control groups, comparing outputs, tests."""

from __future__ import annotations

import platform
import re
import shutil
import struct
import sys
from pathlib import Path
from typing import Any

import pytest

from coda.program.tools import cgroups, elf, inout, root
from coda.program.tools.guest import asserts, syscalls

HEADERS = {
    "x86_64": [Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"), Path("/usr/include/asm/unistd_64.h")],
    "aarch64": [Path("/usr/include/asm-generic/unistd.h")],
}


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_system_call_numbers_are_the_kernels(machine: str) -> None:
    header = next((path for path in HEADERS[machine] if path.exists()), None)
    if header is None:
        pytest.skip("no kernel headers here")
    text = header.read_text()
    numbers = {name: int(number) for name, number in re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)\b", text)}
    column = ["x86_64", "aarch64"].index(machine)
    known = {name: row[column] for name, row in syscalls.FORBIDDEN.items() if name in numbers}
    assert known == {name: numbers[name] for name in known}
    assert len(known) >= len(syscalls.FORBIDDEN) - 12


def verdict(filter_: bytes, data: bytes) -> int:
    """What the kernel would decide: a BPF machine for the instructions that the filter uses."""
    program = list(struct.iter_unpack("<HBBI", filter_))
    accumulator, at = 0, 0
    while True:
        code, yes, no, k = program[at]
        at += 1
        if code == 0x20:
            accumulator = struct.unpack_from("<I", data, k)[0]
        elif code == 0x06:
            return k
        else:
            holds = {0x15: accumulator == k, 0x25: accumulator > k, 0x45: bool(accumulator & k)}[code]
            at += yes if holds else no


def call(number: int, *args: int, arch: int = 0xC000003E) -> bytes:
    """``struct seccomp_data``."""
    return struct.pack("<iIQ6Q", number, arch, 0, *args, *([0] * (6 - len(args))))


ALLOW, KILL, EPERM, ENOSYS, NO_FAMILY = 0x7FFF0000, 0x80000000, 0x50001, 0x50026, 0x50061


@pytest.mark.parametrize(
    ("data", "decision"),
    [
        (call(0), ALLOW),  # read
        (call(1), ALLOW),  # write
        (call(59), ALLOW),  # execve
        (call(101), EPERM),  # ptrace
        (call(172), EPERM),  # iopl
        (call(56, 0x01200011), ALLOW),  # clone, as fork does
        (call(56, 0x10000011), EPERM),  # clone with a new user namespace
        (call(435), ENOSYS),  # clone3
        (call(463), ENOSYS),  # newer than the list
        (call(0x40000001), ENOSYS),  # x32
        (call(41, 1), ALLOW),  # socket: unix
        (call(41, 2), ALLOW),  # socket: IPv4
        (call(41, 16), NO_FAMILY),  # socket: netlink
        (call(41, 40), NO_FAMILY),  # socket: virtual machine's host
        (call(16, 0, 0x5401), ALLOW),  # ioctl
        (call(16, 0, 0x5412), EPERM),  # ioctl that types into a terminal
        (call(16, 0, 0x100005412), EPERM),  # the same, hidden in the upper half
        (call(20, arch=0x40000003), KILL),  # 32-bit
    ],
)
def test_filter_decides(data: bytes, decision: int) -> None:
    assert verdict(syscalls.build("x86_64"), data) == decision


def test_filter_of_the_other_processor_decides() -> None:
    filter_ = syscalls.build("aarch64")
    arm = 0xC00000B7
    assert verdict(filter_, call(63, arch=arm)) == ALLOW  # read
    assert verdict(filter_, call(117, arch=arm)) == EPERM  # ptrace
    assert verdict(filter_, call(220, 0x10000011, arch=arm)) == EPERM  # clone with a new user namespace
    assert verdict(filter_, call(198, 16, arch=arm)) == NO_FAMILY  # socket: netlink
    assert verdict(filter_, call(29, 0, 0x5412, arch=arm)) == EPERM  # ioctl
    assert verdict(filter_, call(63)) == KILL  # x86


def test_unknown_processor_has_no_filter() -> None:
    assert not syscalls.supported("m68k")
    assert syscalls.supported("aarch64")


linux = pytest.mark.skipif(sys.platform != "linux", reason="Linux only")


@linux
def test_binary_names_its_libraries() -> None:
    binary = elf.read(Path(shutil.which("bash") or "/bin/sh"))
    assert binary is not None
    assert "libc.so.6" in binary.needed
    assert binary.interpreter is not None
    assert Path(binary.interpreter).exists()


@pytest.mark.parametrize("content", [b"", b"#!/bin/sh\n", b"\x7fELF", b"\x7fELF\x02\x01" + bytes(100)])
def test_other_files_are_no_binaries(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    assert elf.read(file) is None or elf.read(file) == elf.Binary((), (), None)


@linux
def test_libraries_of_libraries_are_found() -> None:
    found = elf.closure([root._interpreter()], [])
    assert "libc.so.6" in found
    assert all(path.exists() for path in found.values())


@linux
def test_file_system_holds_an_interpreter_libraries_and_nothing_else() -> None:
    places = [place for _, place in root.minimal().binds]
    tops = {place.split("/")[1] for place in places}
    assert tops <= {"python", "packages", "sandbox", "lib", "lib64", "usr"}
    assert not any(place in {"/usr", "/lib", "/usr/lib", "/lib64"} for place in places)
    assert {"/packages/numpy", "/packages/sympy"} <= set(places)


# Control groups, on a folder that looks like one: where they are delegated the kernel gives the same files.


@pytest.fixture
def delegated(tmp_path: Path) -> Path:
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids\n")
    (tmp_path / "cgroup.subtree_control").write_text("memory pids\n")
    (tmp_path / "cgroup.procs").write_text("")
    return tmp_path


def test_own_group_is_found(tmp_path: Path) -> None:
    (tmp_path / "cgroup").write_text("4:memory:/old\n0::/user.slice/run.scope\n")
    (tmp_path / "mounts").write_text(
        "24 1 0:22 / /proc rw - proc proc rw\n30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n"
    )
    assert cgroups.own_group(tmp_path / "cgroup", tmp_path / "mounts") == Path("/sys/fs/cgroup/user.slice/run.scope")


def test_no_group_without_version_two(tmp_path: Path) -> None:
    (tmp_path / "cgroup").write_text("4:memory:/old\n")
    (tmp_path / "mounts").write_text("30 24 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n")
    assert cgroups.own_group(tmp_path / "cgroup", tmp_path / "mounts") is None
    assert cgroups.own_group(tmp_path / "absent", tmp_path / "mounts") is None


def test_group_sets_its_limits_and_is_killed_at_the_end(delegated: Path) -> None:
    with cgroups.Group(delegated, memory_bytes=1 << 20, processes=7) as group:
        group.add(4321)
        content = {file.name: file.read_text() for file in group.path.iterdir()}
        assert content == {"memory.max": "1048576", "pids.max": "7", "memory.swap.max": "0", "cgroup.procs": "4321"}
        assert not group.out_of_memory
        assert group.peak_bytes is None
        (group.path / "memory.events").write_text("low 0\noom 1\noom_kill 2\n")
        (group.path / "memory.peak").write_text("2048\n")
        assert group.out_of_memory
        assert group.peak_bytes == 2048
        for file in group.path.iterdir():  # The kernel's files go with their folder; these do not.
            file.unlink()
    assert (group.path / "cgroup.kill").read_text() == "1"


@pytest.mark.parametrize("missing", ["cgroup.controllers", "cgroup.procs"])
def test_group_that_is_not_delegated_is_not_used(delegated: Path, missing: str) -> None:
    (delegated / missing).unlink()
    assert not cgroups._prepare(delegated)


def test_group_without_the_controllers_is_not_used(delegated: Path) -> None:
    (delegated / "cgroup.controllers").write_text("cpu io\n")
    assert not cgroups._prepare(delegated)


def test_group_shared_with_other_processes_is_left_alone(delegated: Path) -> None:
    (delegated / "cgroup.subtree_control").write_text("")
    (delegated / "cgroup.procs").write_text("1\n2\n")
    assert not cgroups._prepare(delegated)
    assert not [path for path in delegated.iterdir() if path.is_dir()]


@pytest.mark.parametrize(
    ("got", "expected", "tolerance", "equal"),
    [
        ("1 2\n", "1 2", None, True),
        ("1 2  \n\n", "1 2\n", None, True),
        ("1  2", "1 2", None, False),
        ("1\n2", "1 2", None, False),
        ("", "\n", None, True),
        ("a", "b", None, False),
        ("0.3333333", "0.33333333333", 1e-6, True),
        ("0.3333", "0.33333333333", 1e-6, False),
        ("1000000.5", "1000000", 1e-6, True),
        ("x 1.0", "x 1", 1e-9, True),
        ("y 1.0", "x 1", 1e-9, False),
        ("1 2", "1 2 3", 1e-6, False),
        ("nan", "1", 1e-6, False),
    ],
)
def test_outputs_are_the_same(got: str, expected: str, tolerance: float | None, equal: bool) -> None:
    assert inout.same(got, expected, tolerance) is equal


def run_units(source: str, names: dict[str, Any], argument: str | None = None) -> list[str]:
    """Execute a test's steps; the failed assertions."""
    failed = []
    names |= {asserts.FAILED: asserts.Failed}
    for unit in asserts.take_apart(source, "test", argument).units:
        try:
            exec(unit.code, names)
        except asserts.Failed as failure:
            failed.append(failure.source)
    return failed


def test_assertions_are_steps_of_their_own() -> None:
    source = "x = 1\nassert x == 1\nassert x == 2, 'two'\nfor i in range(2):\n    assert i < 1\n"
    script = asserts.take_apart(source, "test", None)
    assert [unit.counts for unit in script.units] == [False, True, True, True]
    assert run_units(source, {}) == ["x == 2", "i < 1"]


@pytest.mark.parametrize(
    "check",
    [
        "def check(candidate):\n    x = 2\n    assert candidate(x) == 4\n    assert candidate(1) == 1\n",
        "def check(candidate):\n    x = 2\n    assert candidate(x) == 4\n    assert candidate(1) == 1\ncheck(f)\n",
        "def check(candidate):\n    if candidate(2) != 4:\n        return\n    assert candidate(1) == 1\n",
    ],
)
def test_check_function_is_run(check: str) -> None:
    assert run_units(check, {"f": lambda x: 2 * x}, "f") == ["candidate(1) == 1"]


def test_assertion_is_evaluated_once() -> None:
    seen: list[int] = []
    assert run_units("assert f(1) == 0", {"f": lambda x: seen.append(x)}) == ["f(1) == 0"]
    assert seen == [1]


def test_chained_comparison_is_kept() -> None:
    assert run_units("assert 1 < 2 < 3\nassert 1 < 3 < 2", {}) == ["1 < 3 < 2"]


def test_failure_is_an_assertion_error_for_the_test() -> None:
    assert run_units("try:\n    assert 1 == 2\nexcept AssertionError:\n    pass", {}) == []


def test_names_are_told_apart() -> None:
    script = asserts.take_apart("import os\ny = g(z)\nassert [h.a for k in y]", "test", None)
    assert {"g", "z", "h", "y"} <= script.used
    assert script.called == {"g"}
    assert script.attributed == {"h"}
    assert {"os", "y", "k"} <= script.defined


def test_platform_of_the_tests_is_known() -> None:
    assert syscalls.supported() == (platform.machine() in {"x86_64", "aarch64"})
