"""The schemas of public benchmarks: how one row becomes a problem with its reference."""

from __future__ import annotations

import ast
import doctest
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from coda.program.answers.choices import LETTERS
from coda.program.types import IOCase, Problem

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Draft:
    """What a row says; the loader adds the split, and an id where the row has none."""

    problem: Problem
    answer: str
    id: str = ""
    program: str | None = None
    hidden_tests: tuple[str, ...] = ()
    io: tuple[IOCase, ...] = ()
    sealed_tests: str = ""
    float_tolerance: float | None = None
    preamble: str = ""


Reader = Callable[[Row, random.Random], Draft]
"""Reads a row; the generator shuffles options, where the schema leaves their order open."""


def gsm8k(row: Row, rng: random.Random) -> Draft:
    """``question`` and ``answer``; the reference follows "####"."""
    return Draft(Problem(text=row["question"]), row["answer"].rpartition("####")[2].strip())


def mathematics(row: Row, rng: random.Random) -> Draft:
    """``problem`` and ``answer``, as MATH-500 and AIME have them."""
    identity = row.get("unique_id", row.get("id"))
    return Draft(Problem(text=row["problem"]), str(row["answer"]), id="" if identity is None else str(identity))


def gpqa(row: Row, rng: random.Random) -> Draft:
    """One right and three wrong answers, which must be shuffled."""
    right = row["Correct Answer"].strip()
    options = [right, *(row[f"Incorrect Answer {n}"].strip() for n in (1, 2, 3))]
    rng.shuffle(options)
    problem = Problem(text=row["Question"].strip(), task="choice", choices=tuple(options))
    return Draft(problem, LETTERS[options.index(right)], id=str(row.get("Record ID") or ""))


def mmlu(row: Row, rng: random.Random) -> Draft:
    """``question``, ``choices`` and the index of the right one."""
    problem = Problem(text=row["question"], task="choice", choices=tuple(map(str, row["choices"])))
    return Draft(problem, LETTERS[int(row["answer"])])


def mmlu_pro(row: Row, rng: random.Random) -> Draft:
    """``question``, up to ten ``options``, and the letter of the right one."""
    problem = Problem(text=row["question"], task="choice", choices=tuple(map(str, row["options"])))
    return Draft(problem, str(row["answer"]), id=str(row["question_id"]))


def arc(row: Row, rng: random.Random) -> Draft:
    """``question``, ``choices`` with texts and labels (letters or numbers), and the right label."""
    labels = list(row["choices"]["label"])
    problem = Problem(text=row["question"], task="choice", choices=tuple(row["choices"]["text"]))
    return Draft(problem, LETTERS[labels.index(row["answerKey"])], id=str(row.get("id") or ""))


def humaneval(row: Row, rng: random.Random) -> Draft:
    """A function's head with its docstring, and code that defines ``check(candidate)``.

    The docstring's examples are visible tests. The head is put in front of a program before it is tested, as the
    benchmark's own harness does: it brings imports and helper functions. It also stands before the tests, which may
    call the helpers, and must not get the program's own.
    """
    prompt, name = row["prompt"], row["entry_point"]
    text = f"Write this Python function, complete with what it needs:\n\n{prompt.strip()}"
    problem = Problem(text=text, task="code", tests=_docstring_examples(prompt, name), entry_point=name)
    solution = prompt + row["canonical_solution"]
    return Draft(problem, solution, row["task_id"], solution, hidden_tests=(prompt, row["test"]), preamble=prompt)


def mbpp(row: Row, rng: random.Random) -> Draft:
    """A task in words and its tests: the first is visible too, since only it says the function's name."""
    tests = tuple(row["test_list"])
    problem = Problem(text=row["prompt"], task="code", tests=tests[:1])
    code = row["code"].replace("\r\n", "\n")
    imports = "".join(f"{line}\n" for line in row.get("test_imports") or ())
    return Draft(problem, code, str(row["task_id"]), code, hidden_tests=tests, preamble=imports)


def _docstring_examples(prompt: str, name: str) -> tuple[str, ...]:
    """The examples of a docstring as assertions, as far as their results are plain values."""
    try:
        functions = [node for node in ast.parse(prompt).body if isinstance(node, ast.FunctionDef) and node.name == name]
        examples = doctest.DocTestParser().get_examples(ast.get_docstring(functions[0]) or "") if functions else []
    except (SyntaxError, ValueError):
        return ()
    tests = []
    for example in examples:
        source, want = example.source.strip(), example.want.strip()
        if source.startswith(f"{name}(") and "\n" not in source and _is_value(want):
            tests.append(f"assert {source} == {want}")
    return tuple(tests)


def _is_value(text: str) -> bool:
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return False
    return True
