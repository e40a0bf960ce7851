"""Finding the program in a reply."""

from __future__ import annotations

import pytest

from coda.program.answers import extract, extract_program


@pytest.mark.parametrize(
    ("text", "program"),
    [
        ("```python\nprint(1)\n```", "print(1)"),
        ("First:\n```python\nprint(1)\n```\nBetter:\n```python\nprint(2)\n```", "print(2)"),
        ("```py\nprint(1)\n```\nIt prints\n```\n1\n```", "print(1)"),
        ("```\nx = 1\nprint(x)\n```\n```output\n1\n```", "x = 1\nprint(x)"),
        ("```python\nif True:\n    print(1)\n", "if True:\n    print(1)"),
        ("```python\nprint(1)\n```\nand now\n```python\nprint(2", "print(1)"),
        ("~~~\nprint(1)\n~~~", "print(1)"),
        ("```cpp\nint main() { return 0; }\n```", "int main() { return 0; }"),
        ("```python\r\nprint(1)\r\n```", "print(1)"),
        ("```python\nprint(1\n```", "print(1"),
        ("print(3 * 12 + 5)", "print(3 * 12 + 5)"),
        ("Here it is:\n\nx = 3\nprint(x * 2)\n\nThis prints six.", "x = 3\nprint(x * 2)"),
        ("    return a + b", None),
        ("The answer is 42.", None),
        ("42", None),
        ("answer", None),
        ("", None),
    ],
)
def test_the_program_of_a_reply(text: str, program: str | None) -> None:
    assert extract_program(text) == program


def test_the_answer_to_a_code_problem_is_its_program() -> None:
    assert extract("```python\ndef f(): return 1\n```", "code") == "def f(): return 1"
