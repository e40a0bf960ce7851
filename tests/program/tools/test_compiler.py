"""Programs in C and C++: compiled and run in the sandbox, with the compiler's messages as feedback."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from coda.errors import SandboxError
from coda.program.tools import compiler
from coda.program.tools.sandbox import IOCase, RunLimits, Sandbox

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.skipif(
        shutil.which("gcc") is None or shutil.which("g++") is None, reason="no C and C++ compilers here"
    ),
]

DOUBLES = {
    "c": '#include <stdio.h>\nint main(void) { int x; scanf("%d", &x); printf("%d\\n", 2 * x); return 0; }\n',
    "cpp": "#include <iostream>\nint main() { int x; std::cin >> x; std::cout << 2 * x << '\\n'; }\n",
}


@pytest.mark.parametrize("language", ["c", "cpp"])
async def test_program_is_compiled_and_run(sandbox: Sandbox, language: str) -> None:
    execution = await sandbox.run(DOUBLES[language], language=language, stdin="21")
    assert (execution.outcome, execution.stdout, execution.exit_status) == ("ok", "42\n", 0)


@pytest.mark.parametrize("language", ["c", "cpp"])
async def test_program_passes_io_cases(sandbox: Sandbox, language: str) -> None:
    cases = [IOCase("1", "2"), IOCase("-4", "-8"), IOCase("100", "201")]
    execution = await sandbox.run_io(DOUBLES[language], cases, language=language)
    assert (execution.outcome, execution.tests_passed, execution.tests_total) == ("wrong", 2, 3)
    assert "expected:\n201\ngot:\n200" in execution.feedback


async def test_libraries_are_there(sandbox: Sandbox) -> None:
    program = (
        "#include <bits/stdc++.h>\n#include <cmath>\n"
        'int main() { std::map<std::string, double> m{{"root", std::sqrt(2.0)}};'
        ' std::printf("%.3f\\n", m["root"]); }\n'
    )
    assert (await sandbox.run(program, language="cpp")).stdout == "1.414\n"


async def test_compiler_messages_are_the_feedback(sandbox: Sandbox) -> None:
    execution = await sandbox.run("int main(void) { return missing; }\n", language="c")
    assert execution.outcome == "error"
    assert execution.feedback.startswith("The program does not compile.")
    assert "program.c:1:25: error:" in execution.feedback


async def test_program_that_does_not_compile_passes_no_case(sandbox: Sandbox) -> None:
    execution = await sandbox.run_io("int main( {", [IOCase("", "")], language="cpp")
    assert (execution.outcome, execution.tests_passed, execution.tests_total) == ("error", 0, 1)


@pytest.mark.parametrize(
    ("body", "outcome", "says"),
    [
        ("return 3;", "error", "exit status 3"),
        ("volatile int *p = 0; return *p;", "killed", "SIGSEGV"),
        ("abort();", "killed", "SIGABRT"),
        ("for (;;) ;", "timeout", "within 1 seconds"),
        ('for (;;) puts("spam");', "output", "more than 65536 bytes"),
        (
            "std::vector<char> v; for (int i = 0; i < 300; i++) v.resize(v.size() + 10000000); return 0;",
            "memory",
            "MiB",
        ),
        ("for (int i = 0; i < 1000; i++) if (fork() < 0) return 0; else if (i > 100) return 1;", "ok", ""),
    ],
)
async def test_outcome_of_a_compiled_program(sandbox: Sandbox, body: str, outcome: str, says: str) -> None:
    program = (
        f"#include <cstdio>\n#include <cstdlib>\n#include <vector>\n#include <unistd.h>\nint main() {{ {body} }}\n"
    )
    execution = await sandbox.run(program, language="cpp", limits=RunLimits(timeout=1, memory_mb=128, processes=16))
    assert execution.outcome == outcome, execution
    assert says in execution.feedback


async def test_deep_recursion_has_room(sandbox: Sandbox) -> None:
    program = (
        "#include <stdio.h>\n"
        "__attribute__((noinline)) int f(int n) { volatile char pad[64]; pad[0] = n;"
        " return n ? f(n - 1) + pad[0] * 0 + 1 : 0; }\n"
        'int main(void) { printf("%d\\n", f(500000)); return 0; }\n'
    )
    assert (await sandbox.run(program, language="c")).stdout == "500000\n"


async def test_compiled_program_sees_nothing_of_the_host(sandbox: Sandbox) -> None:
    program = (
        "#include <stdio.h>\n#include <unistd.h>\n"
        'int main(void) { printf("%d %d\\n", access("/etc/passwd", R_OK), access("/usr/bin", R_OK)); }\n'
    )
    assert (await sandbox.run(program, language="c")).stdout == "-1 -1\n"


@pytest.mark.parametrize(
    "program",
    [
        '#include "/etc/passwd"\nint main(void) { return 0; }\n',
        '__asm__(".incbin \\"/etc/passwd\\"");\nint main(void) { return 0; }\n',
    ],
)
async def test_compiler_reads_nothing_of_the_host(sandbox: Sandbox, program: str) -> None:
    execution = await sandbox.run(program, language="c")
    assert execution.outcome == "error"
    assert "root:" not in execution.feedback


async def test_compiler_that_does_not_end_is_stopped(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "COMPILE_LIMITS", replace(compiler.COMPILE_LIMITS, timeout=1.0))
    program = '#include "/dev/urandom"\nint main() {}\n'
    execution = await sandbox.run(program, language="cpp")
    assert execution.outcome == "error"
    assert "does not compile" in execution.feedback


async def test_compiler_output_is_limited(sandbox: Sandbox) -> None:
    program = "int main() {\n" + "".join(f"undeclared{i}();\n" for i in range(20000)) + "}\n"
    execution = await sandbox.run(program, language="cpp")
    assert execution.outcome == "error"
    assert len(execution.feedback) < 3000


async def test_missing_compiler_is_a_clear_message(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    row = replace(compiler.LANGUAGES["cpp"], compilers=("no-such-compiler",))
    monkeypatch.setitem(compiler.LANGUAGES, "cpp", row)
    with pytest.raises(SandboxError, match=r"No C\+\+ compiler \(no-such-compiler\).*package `g\+\+`"):
        await sandbox.run(DOUBLES["cpp"], language="cpp")


async def test_another_language_is_one_more_row(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    row = compiler.Language("C with assertions off", "program.c", ("gcc",), ("-DNDEBUG",), (), "gcc")
    monkeypatch.setitem(compiler.LANGUAGES, "quiet-c", row)
    program = "#include <assert.h>\nint main(void) { assert(0); return 0; }\n"
    assert (await sandbox.run(program, language="quiet-c")).outcome == "ok"
    assert (await sandbox.run(program, language="c")).outcome == "killed"
