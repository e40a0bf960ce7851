"""``coda solve``: one problem, with the stages shown as they end."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.markup import escape
from rich.panel import Panel

from coda.cli.console import emit_json, err, out
from coda.cli.options import EngineOptions, Json, ProgramOptions
from coda.errors import UsageError
from coda.program.events import Event, watching
from coda.program.types import Attempt, Plan, Problem, Solution, Task, Verdict


def solve(
    problem: str,
    *,
    task: Task = "math",
    choices: Annotated[tuple[str, ...], Parameter(negative=())] = (),
    json: Json = False,
    engine: EngineOptions | None = None,
    program: ProgramOptions | None = None,
) -> int:
    """Solve one problem and watch the stages.

    Args:
        problem: The problem's text; "-" reads it from stdin, "@FILE" from a file.
        task: The kind of answer.
        choices: An option of a multiple-choice problem; repeat it for each.
        json: Print the whole story as one JSON document on stdout.
        engine: The Engine.
        program: The pipeline.
    """
    asked = Problem(text=read_text(problem), task="choice" if choices else task, choices=choices)
    with (engine or EngineOptions()).open() as opened:
        pipeline = (program or ProgramOptions()).build(opened)
        with watching(show):
            solution = pipeline.solve(asked)
    if json:
        emit_json(solution)
    else:
        out.print(solution.answer if solution.answer is not None else "(no answer)", markup=False)
    return _status(solution)


def read_text(argument: str) -> str:
    """The problem's text from the argument, a file (``@FILE``), or stdin (``-``)."""
    import sys

    text = argument
    if argument == "-":
        text = sys.stdin.read()
    elif argument.startswith("@"):
        try:
            text = Path(argument[1:]).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"Cannot read the problem from {argument[1:]}: {error}.") from error
    if not text.strip():
        raise UsageError("The problem is empty. Give its text, @FILE, or - for stdin.")
    return text


def show(event: Event) -> None:
    """Show one event on stderr."""
    match event.data:
        case Plan() as plan:
            origin = f", difficulty {plan.difficulty}" if plan.difficulty else ""
            err.print(f"[bold]plan[/]        {len(plan.paths)} paths ({plan.source}{origin})")
            for path in plan.paths:
                if path.approach:
                    err.print(f"            {path.mode}: {escape(path.approach)}")
        case Attempt() as attempt:
            err.print(f"[bold]{event.kind:<11}[/] {_attempt(attempt)}")
        case Verdict() as verdict:
            err.print(
                f"[bold]verdict[/]     {escape(str(verdict.answer))} "
                f"[dim]({verdict.strategy}: {escape(verdict.reason)}; confidence {verdict.confidence:.2f})[/]"
            )
        case Solution() as solution:
            used = solution.usage
            err.print(f"[dim]{used.calls} calls, {used.tokens} tokens, {solution.seconds:.1f} s[/]")
            if solution.stopped:
                err.print(Panel(escape(solution.stopped), title="stopped early", border_style="yellow"))
        case _:
            pass


def _attempt(attempt: Attempt) -> str:
    mode = attempt.path.mode if attempt.path else attempt.origin
    answer = "no answer" if attempt.answer is None else attempt.answer
    if attempt.code is not None and attempt.answer == attempt.code:
        answer = f"a program of {len(attempt.code.splitlines())} lines"
    parts = [f"{mode} → {escape(answer)}"]
    if attempt.refinements:
        parts.append(f"corrected {attempt.refinements}×")
    if attempt.execution is not None and attempt.execution.outcome != "ok":
        parts.append(f"program: {attempt.execution.outcome}")
    if attempt.finish != "ok":
        parts.append(attempt.finish)
    return ", ".join(parts)


def _status(solution: Solution) -> int:
    """0 with an answer; 3 where a budget ended it; 1 where there is none."""
    if any(attempt.finish == "budget" for attempt in solution.attempts):
        return 3
    return 0 if solution.answer is not None else 1
