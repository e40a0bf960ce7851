"""``coda data``: the benchmarks and users' own files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field
from rich.panel import Panel
from rich.table import Table

from coda.cli.console import emit_json, note, out
from coda.cli.options import Json
from coda.data.benchmarks import load, names
from coda.data.splits import near_duplicates, sizes
from coda.program.presentation import statement


def list_(*, json: Json = False) -> int:
    """List the benchmarks.

    Args:
        json: Print one JSON document.
    """
    found = [load(name) for name in names()]
    if json:
        emit_json([{"name": each.name, "sizes": sizes(each.examples), "licence": each.licence} for each in found])
        return 0
    table = Table("benchmark", "task", "train", "validation", "test", "licence", box=None, pad_edge=False)
    for each in found:
        task = each.examples[0].problem.task
        table.add_row(each.name, task, *map(str, sizes(each.examples).values()), each.licence)
    out.print(table)
    return 0


def show(
    benchmark: str,
    *,
    n: Annotated[int, Field(ge=1)] = 3,
    split: Literal["train", "validation", "test"] = "train",
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


def check(benchmark: str, *, data_file: Path | None = None) -> int:
    """Check a benchmark or a file of your own, row by row: fields, answers, splits, near-duplicates.

    Args:
        benchmark: A benchmark's name, or a file of your own.
        data_file: A local file in the benchmark's own schema.
    """
    found = load(benchmark, data_file=data_file)
    parts = ", ".join(f"{count} {split}" for split, count in sizes(found.examples).items())
    out.print(f"{found.name}: {len(found.examples)} problems ({parts}), digest {found.digest[:12]}", markup=False)
    for remark in found.notes:
        note(remark)
    for one, other, similarity in near_duplicates(found.examples):
        note(
            f"{one.id} ({one.split}) and {other.id} ({other.split}) are {similarity:.0%} alike: "
            "what is learned from one helps with the other."
        )
    return 0
