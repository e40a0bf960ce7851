"""What a report holds: figures that agree with the runs, every story, and files that others can read."""

from __future__ import annotations

import csv
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from synthetic_run import Synthetic, make_run

from coda.errors import RunError
from coda.experiments.report import gather, write_report
from coda.experiments.report.contents import command, settings_toml
from coda.experiments.report.stories import tell, unpack


def test_runs_of_a_folder_stand_in_the_order_in_which_they_began(reported: Any) -> None:
    assert [run.summary.program for run in reported.contents.runs][:3] == ["single", "Coda", "Compiled"]
    assert {each.against.name for each in reported.contents.effects} == {"single"}


def test_every_problem_of_every_run_has_its_story(reported: Any) -> None:
    stories = tell(reported.contents.runs)
    told = [story for block in stories.blocks for story in unpack(block)]
    index = unpack(stories.index)["problems"]
    assert [story["id"] for story in told] == [entry[0] for entry in index]
    assert len(told) == 260
    assert all(len(story["results"]) == 5 for story in told)  # the last run has two samples
    assert stories.cut is None


def test_texts_are_cut_in_the_middle_where_stories_would_not_fit(
    reported: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coda.experiments.report.stories.BUDGET", 1000)
    monkeypatch.setattr("coda.experiments.report.stories.LENGTHS", (20_000, 40))
    stories = tell(reported.contents.runs)
    assert stories.cut == 40
    assert "characters …]" in json.dumps(unpack(stories.blocks[0]), ensure_ascii=False)


def test_csv_and_markdown_hold_the_same_figures(reported: Any) -> None:
    with reported.written.runs.open() as stream:
        rows = list(csv.DictReader(stream))
    assert [float(row["accuracy"]) for row in rows] == [run.summary.accuracy for run in reported.contents.runs]
    with reported.written.problems.open() as stream:
        assert sum(1 for _ in csv.DictReader(stream)) == 260 * 5
    words = reported.written.markdown.read_text()
    assert f"{reported.contents.runs[0].summary.accuracy:.1%}" in words
    assert "\\<b>bold" in words


def test_the_command_and_the_settings_repeat_the_run(reported: Any) -> None:
    run = reported.contents.runs[0]
    words = command(run)
    assert "coda eval made-up --split validation --limit 260" in words
    assert "--baseline single" in words
    assert tomllib.loads(settings_toml(run)) == {"quorum": 2, "paths": ["code", "reason"]}


def test_the_same_runs_make_the_same_page(reported: Any, tmp_path: Path) -> None:
    again = write_report(reported.contents, tmp_path)
    assert again.page.read_bytes() == reported.written.page.read_bytes()


def test_runs_on_different_data_are_shown_and_not_compared(tmp_path: Path) -> None:
    make_run(tmp_path / "a", Synthetic(split="train"))
    make_run(tmp_path / "b", Synthetic(split="validation"))
    contents = gather([tmp_path / "a", tmp_path / "b"])
    assert len(contents.runs) == 2
    assert contents.effects == ()
    assert write_report(contents, tmp_path / "out").page.exists()


def test_a_folder_without_runs_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="holds no finished run"):
        gather([tmp_path])


def test_an_unfinished_run_is_left_out_and_named(tmp_path: Path) -> None:
    make_run(tmp_path / "a", Synthetic())
    make_run(tmp_path / "b", Synthetic())
    (tmp_path / "b" / "summary.json").unlink()
    contents = gather([tmp_path])
    assert len(contents.runs) == 1
    assert any("b is left out" in remark for remark in contents.remarks)
