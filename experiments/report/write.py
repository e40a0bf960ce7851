"""Writes a report: the page, Markdown, and CSV."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment
from markupsafe import Markup

from coda import __version__
from coda.errors import RunError
from coda.experiments.report import plots, tables
from coda.experiments.report.contents import Contents, command, facts, outcomes, settings_toml
from coda.experiments.report.markdown import markdown
from coda.experiments.report.runs import Run
from coda.experiments.report.stories import Stories, tell


@dataclass(frozen=True)
class Written:
    """The files of a report.

    Attributes:
        page: The page, which opens from the disk.
        markdown: The figures as Markdown.
        runs: A CSV line for each run.
        problems: A CSV line for each result.
    """

    page: Path
    markdown: Path
    runs: Path
    problems: Path


def write_report(contents: Contents, out: Path, *, made_by: str = "coda report") -> Written:
    """Write a report into a folder; files of an older one are replaced.

    Args:
        contents: What it says.
        out: The folder; made where it does not exist.
        made_by: The command that the report names as its origin.

    Raises:
        RunError: Results cannot be read, or the folder cannot be written.
    """
    written = Written(out / "report.html", out / "report.md", out / "runs.csv", out / "problems.csv")
    try:
        out.mkdir(parents=True, exist_ok=True)
        page = render(contents, tell(contents.runs), made_by=made_by)
        written.page.write_bytes(page.encode("utf-8", "replace"))
        written.markdown.write_bytes(markdown(contents, made_by).encode("utf-8", "replace"))
        tables.write_runs(contents.runs, written.runs)
        tables.write_problems(contents.runs, written.problems)
    except OSError as error:
        raise RunError(f"{out}: {error.strerror}. Name a folder that can be written.") from error
    return written


def render(contents: Contents, stories: Stories, *, made_by: str) -> str:
    """The page. Its policy lets only its own script and style run, and nothing be loaded from anywhere."""
    script, style = _own("page.js"), _own("page.css")
    template = Environment(autoescape=True, trim_blocks=False).from_string(_own("page.html"))
    return template.render(
        contents=contents,
        stories=stories,
        script=Markup(script),  # noqa: S704 - our own file
        style=Markup(style),  # noqa: S704 - our own file
        script_hash=_digest(script),
        style_hash=_digest(style),
        columns=tables.RESULTS,
        rows=tables.results(contents.runs),
        effect_columns=tables.EFFECTS,
        effect_rows=tables.effects(contents.effects),
        forest=plots.forest(contents.effects) if contents.effects else "",
        pareto=plots.pareto(contents),
        waterfalls=list(_waterfalls(contents)),
        refinements=list(_refinements(contents)),
        losses=sorted({end for run in contents.runs for end in outcomes(run)} - {"right"}),
        setups=[(run, facts(run), command(run), settings_toml(run)) for run in contents.runs],
        made_by=made_by,
        version=__version__,
        cut=stories.cut,
    )


def _waterfalls(contents: Contents) -> Iterator[tuple[Run, Markup, str]]:
    for run in contents.runs:
        if run.summary.gap is not None:
            ends = ", ".join(f"{count} {end}" for end, count in outcomes(run).items())
            yield run, plots.waterfall(run, run.summary.gap), ends


def _refinements(contents: Contents) -> Iterator[tuple[Run, Markup]]:
    for run in contents.runs:
        if run.summary.gap is not None and run.summary.gap.refinement:
            yield run, plots.refinement(run, run.summary.gap.refinement)


def _own(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")


def _digest(text: str) -> str:
    """How a page's policy names a script or a style."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
