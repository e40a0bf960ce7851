"""Real programs: the canonical solutions pass, and mutations that change what the tests see are caught."""

from __future__ import annotations

import ast
import asyncio
import copy
import itertools
import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from coda.data.benchmarks import load
from coda.data.examples import Example
from coda.data.grading import agrade

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]

PER_SOLUTION = 5
JUDGE = """
import json, signal, sys
for program, tests, name in json.load(sys.stdin):
    signal.alarm(2)
    space = {}
    try:
        exec(program, space)
        exec(tests, space)
        space["check"](space[name])
    except BaseException:
        print("differs", flush=True)
    else:
        print("same", flush=True)
    signal.alarm(0)
"""
"""Says of each mutation whether the benchmark's tests see it: on its own, without the sandbox or the grader."""

OPERATORS: dict[type[ast.AST], Callable[[], ast.AST]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Mod: ast.Mult, ast.FloorDiv: ast.Mult, ast.Lt: ast.GtE,
    ast.Gt: ast.LtE, ast.LtE: ast.Gt, ast.GtE: ast.Lt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.And: ast.Or,
    ast.Or: ast.And, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip


def mutations(source: str, name: str, seed: int) -> Iterator[str]:
    """Programs whose function differs in one operator, condition, constant, loop, or returned value.

    Helper functions that the benchmark gives stay: its tests use its own.
    """
    tree = ast.parse(source)
    places = [(place, kind) for place, node in enumerate(_inside(tree, name)) for kind in range(len(_changes(node)))]
    random.Random(seed).shuffle(places)
    for place, kind in places:
        mutated = copy.deepcopy(tree)
        _changes(_inside(mutated, name)[place])[kind]()
        yield ast.unparse(ast.fix_missing_locations(mutated))


def _inside(tree: ast.Module, name: str) -> list[ast.AST]:
    """The nodes of a function."""
    (function,) = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name)
    return list(ast.walk(function))


def _changes(node: ast.AST) -> list[Callable[[], None]]:
    """The ways in which a node can be changed."""

    def replacing(name: str, value: object) -> Callable[[], None]:
        return lambda: setattr(node, name, value)

    if isinstance(node, (ast.BinOp, ast.AugAssign, ast.BoolOp)):
        return [replacing("op", OPERATORS[type(node.op)]())] if type(node.op) in OPERATORS else []
    if isinstance(node, ast.Compare):
        first, *others = node.ops
        return [replacing("ops", [OPERATORS[type(first)](), *others])] if type(first) in OPERATORS else []
    if isinstance(node, (ast.If, ast.IfExp, ast.While)):
        return [replacing("test", ast.UnaryOp(ast.Not(), node.test))]
    if isinstance(node, ast.Constant) and isinstance(node.value, (bool, int)):
        return [replacing("value", not node.value if isinstance(node.value, bool) else node.value + 1)]
    if isinstance(node, ast.For):
        return [replacing("body", [ast.Pass()])]
    if isinstance(node, ast.Return) and node.value is not None:
        wrapped = [kind([node.value], ast.Load()) for kind in (ast.Tuple, ast.List)]
        others = [ast.Constant(None), ast.Constant(0), ast.UnaryOp(ast.Not(), node.value)]
        return [replacing("value", value) for value in (*wrapped, *others)]
    return []


def seen_by_tests(example: Example, programs: list[str]) -> Iterator[str]:
    """Those of the programs that the tests tell from the right one; a hanging one counts."""
    while programs:
        rows = [[program, example.hidden_tests[-1], example.problem.entry_point] for program in programs]
        judged = subprocess.run(
            [sys.executable, "-c", JUDGE], input=json.dumps(rows), capture_output=True, text=True, check=False
        )
        verdicts = [line for line in judged.stdout.split() if line in {"same", "differs"}]
        yield from (program for program, verdict in zip(programs, verdicts, strict=False) if verdict == "differs")
        if len(verdicts) < len(programs):
            yield programs[len(verdicts)]  # it hung, and the alarm ended the judge
        programs = programs[len(verdicts) + 1 :]


@pytest.fixture(scope="module")
def examples(shared_data: Path) -> tuple[Example, ...]:
    return load("humaneval", data_file=shared_data / "humaneval_80.jsonl").examples


async def test_canonical_solutions_pass(examples: tuple[Example, ...]) -> None:
    grades = await asyncio.gather(*(agrade(example, example.answer) for example in examples))
    assert [(e.id, g.feedback) for e, g in zip(examples, grades, strict=True) if not g.correct] == []
    assert len(grades) == 80


async def test_bodies_alone_pass_too(examples: tuple[Example, ...]) -> None:
    """As completion models write them: the head is the benchmark's."""
    bodies = [example.answer.removeprefix(example.preamble) for example in examples]
    grades = await asyncio.gather(*(agrade(e, body) for e, body in zip(examples, bodies, strict=True)))
    assert all(grade.correct for grade in grades)


async def test_mutations_that_the_tests_see_are_caught(examples: tuple[Example, ...]) -> None:
    wrong: list[tuple[Example, str]] = []
    for number, example in enumerate(examples):
        name = example.problem.entry_point or ""
        candidates = list(itertools.islice(mutations(example.answer, name, number), 3 * PER_SOLUTION))
        wrong += [(example, program) for program in itertools.islice(seen_by_tests(example, candidates), PER_SOLUTION)]
    assert len(wrong) == PER_SOLUTION * len(examples)
    grades = await asyncio.gather(*(agrade(example, program) for example, program in wrong))
    missed = [(e.id, program) for (e, program), grade in zip(wrong, grades, strict=True) if grade.correct]
    assert missed == []
    assert all(grade.feedback for grade in grades)
