"""``coda data``: the benchmarks and users' own files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field
from rich.panel import Panel
from rich.table import Table

from coda.cli.console import emit_json, note, out
from coda.cli.options import Json
from coda.data import survey
from coda.data.benchmarks import load
from coda.data.survey import catalogue
from coda.program.presentation import statement


def list_(*, json: Json = False) -> int:
    """List the benchmarks; nothing is loaded.

    Args:
        json: Print one JSON document.
    """
    found = catalogue()
    if json:
        emit_json([entry.model_dump(mode="json") for entry in found])
        return 0
    table = Table("benchmark", "task", "about", box=None, pad_edge=False)
    for entry in found:
        table.add_row(entry.name, entry.task, f"{entry.about}{' (gated)' * entry.gated}")
    out.print(table)
    return 0


def show(
    benchmark: str,
    *,
    n: Annotated[int, Field(ge=1)] = 3,
    split: Literal["train", "validation", "test", "all"] = "all",
    data_file: Path | None = None,
    json: Json = False,
) -> int:
    """Show problems of a benchmark, as the Engine reads them, with their answers.

    Args:
        benchmark: A benchmark's name, or a file of your own.
        n: How many.
        split: Of which part.
        data_file: A local file in the benchmark's own schema.
        json: Print one JSON document.
    """
    found = load(benchmark, split=split, data_file=data_file)
    shown = found.examples[:n]
    if json:
        emit_json([example.model_dump(mode="json") for example in shown])
        return 0
    for example in shown:
        text = statement(example.problem) + f"\n\n→ {example.answer or '(judged by tests alone)'}"
        out.print(Panel(text, title=example.id, title_align="left"), markup=False, soft_wrap=False)
    note(f"{len(shown)} of {len(found.examples)} in {found.name}/{split}.")
    return 0


def check(benchmark: str, *, data_file: Path | None = None, json: Json = False) -> int:
    """Check a benchmark or a file of your own, row by row: fields, answers, splits, near-duplicates.

    Args:
        benchmark: A benchmark's name, or a file of your own.
        data_file: A local file in the benchmark's own schema.
        json: Print one JSON document.
    """
    found = survey.check(benchmark, data_file)
    if json:
        emit_json(found)
        return 0
    parts = ", ".join(f"{count} {split}" for split, count in found.sizes.items())
    out.print(f"{found.name}: {sum(found.sizes.values())} problems ({parts}), digest {found.digest[:12]}", markup=False)
    for identity, reason in found.ungradable.items():
        note(f"{identity}: {reason}")
    for ids in found.repeated:
        note(f"{', '.join(ids)} are one and the same problem.")
    for pair in found.near_duplicates:
        note(
            f"{pair.first} and {pair.second}, in different splits, are {pair.similarity:.0%} alike: "
            "what is learned from one helps with the other."
        )
    return 0
