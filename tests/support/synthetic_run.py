"""Run directories made by hand: whole stories of every kind, through the project's own writers."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from coda.optimize.records import Fault, GradedAttempt, Record
from coda.optimize.rundir import RunDirectory
from coda.optimize.summary import Facts, Summary, Tally
from coda.program.types import Execution, Plan, Problem, Usage, Verdict
from coda.program.types import Path as Way

WORDS = (  # noqa: SIM905
    "total apples equation factor remainder triangle subtract therefore number sum divide each carry value assume "
    "twice basket answer prime integer solve first second half because length area root product check again modulo"
).split()


@dataclass(frozen=True)
class Synthetic:
    """A run to be made.

    Attributes:
        program: Its name; ``single`` has one attempt for each problem, others have three and a reflection.
        problems: How many.
        skill: How likely an attempt is right.
        split: Of the benchmark.
        samples: Answers to each problem.
        length: Words of reasoning for each attempt.
        texts: Texts of the first problems; the others are made up.
        failing: Ids of problems that end in an error.
    """

    program: str = "Coda"
    problems: int = 12
    skill: float = 0.5
    split: str = "validation"
    samples: int = 1
    length: int = 30
    texts: tuple[str, ...] = ()
    failing: tuple[str, ...] = ()
    seed: int = 0
    benchmark: str = "made-up"
    settings: dict[str, Any] = field(default_factory=lambda: {"quorum": 2, "paths": ["code", "reason"]})


def make_run(run_dir: Path, run: Synthetic) -> Summary:
    """Write the run as an evaluation would."""
    generator = random.Random(f"{run.seed} {run.program}")
    identity = {
        "benchmark": {"name": run.benchmark, "split": run.split, "digest": "d" * 64},
        "evaluation": {"problems": run.problems, "ids": "0123456789ab", "samples": run.samples},
        "program": {
            "name": run.program,
            "settings": run.settings,
            "predictors": {"executor.code": "0123456789ab"},
            "model": "openai/made-up",
            "profile": "generic (0123456789ab)",
            "seed": 0,
            "sandbox": "full",
        },
    }
    notes = {"started": f"2026-01-01T00:00:{run.seed:02d}+00:00", "coda": "0.1.0", "git": "f" * 40}
    tally = Tally(run.samples)
    with RunDirectory(run_dir) as directory:
        directory.claim(identity, notes)
        for number in range(run.problems):
            for sample in range(run.samples):
                record = _record(run, number, sample, generator)
                directory.append(record)
                tally.add(record)
        facts = Facts(
            benchmark=run.benchmark,
            split=run.split,
            digest="d" * 64,
            model="openai/made-up",
            program=run.program,
            sandbox="full",
            planned=run.problems * run.samples,
            seconds=12.5,
        )
        summary = tally.summary(facts, {})
        directory.write_summary(summary)
    return summary


def _record(run: Synthetic, number: int, sample: int, generator: random.Random) -> Record:
    identity = f"p{number:04d}"
    text = run.texts[number] if number < len(run.texts) else f"Problem {number}: {_words(25, run.seed, number)}?"
    right = str(number * 7 % 1000)
    shared: dict[str, Any] = {"id": identity, "sample": sample, "problem": Problem(text=text), "expected": right}
    if identity in run.failing:
        fault = Fault(kind="timeout", message="no reply within 600 s")
        return Record(**shared, answer=None, error=fault, usage=Usage(calls=1, prompt_tokens=50))
    if run.program == "single":
        attempts: tuple[GradedAttempt, ...] = (_attempt(run, right, "reason", generator),)
    else:
        attempts = tuple(_attempt(run, right, mode, generator) for mode in ("code", "reason", "code"))
        if len({each.answer for each in attempts}) > 1:
            attempts += (_attempt(run, right, None, generator),)
    chosen = generator.randrange(len(attempts))
    taken = attempts[chosen]
    classes: dict[str, list[int]] = {}
    for place, each in enumerate(attempts):
        classes.setdefault(str(each.answer), []).append(place)
    usage = Usage(calls=len(attempts), prompt_tokens=90 * len(attempts), completion_tokens=generator.randrange(50, 400))
    return Record(
        **shared,
        answer=taken.answer,
        score=taken.score,
        correct=taken.correct,
        attempts=attempts,
        classes=tuple(map(tuple, classes.values())),
        plan=Plan(
            paths=tuple(each.path for each in attempts if each.path is not None), difficulty="medium", source="engine"
        ),
        verdict=Verdict(answer=taken.answer, confidence=0.6, reason=f"{chosen + 1} said so", chosen=chosen),
        early_exit=len(attempts) == 3,
        stages={"executor": usage},
        usage=usage,
        seconds=1.25,
    )


def _attempt(run: Synthetic, right: str, mode: str | None, generator: random.Random) -> GradedAttempt:
    correct = generator.random() < run.skill
    answer = right if correct else str(generator.randrange(1000, 1010))
    shared: dict[str, Any] = {
        "origin": "path" if mode else "reflection",
        "path": Way(mode=mode, approach=_pick(generator, 4), steps=(_pick(generator, 6),)) if mode else None,  # type: ignore[arg-type]
        "answer": answer,
        "correct": correct,
        "score": float(correct),
        "reasoning": _pick(generator, run.length),
    }
    if mode != "code":
        return GradedAttempt(**shared)
    code = f"# {_pick(generator, run.length // 2)}\nprint({answer})"
    if generator.random() < 0.5:
        return GradedAttempt(**shared, code=code, execution=Execution(outcome="ok", stdout=answer))
    failed = GradedAttempt(
        path=shared["path"],
        code=f"# {_pick(generator, run.length // 2)}\nprint(total)",
        reasoning=_pick(generator, run.length // 2),
        execution=Execution(
            outcome="error",
            stderr="NameError: name 'total' is not defined",
            feedback="line 2: NameError: name 'total' is not defined",
        ),
        finish="failed",
    )
    ran = Execution(outcome="ok", stdout=answer)
    return GradedAttempt(**shared, code=code, execution=ran, refinements=1, earlier=(failed,))


def _pick(generator: random.Random, count: int) -> str:
    return " ".join(
        generator.choice(WORDS) if generator.random() < 0.8 else str(generator.randrange(9999)) for _ in range(count)
    )


def _words(count: int, *seed: object) -> str:
    """The same words for the same problem in every run of a benchmark."""
    return _pick(random.Random(str(seed[1:])), count)
