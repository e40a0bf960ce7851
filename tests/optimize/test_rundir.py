"""A run directory belongs to one process and one configuration, and survives crashes and full disks."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from pydantic import BaseModel

from coda.errors import RunError
from coda.optimize.records import read_results
from coda.optimize.rundir import RunDirectory, read_config

IDENTITY = {"benchmark": {"name": "words", "digest": "abc"}, "samples": 1}


def test_records_come_back_by_id_and_sample_whatever_ended_first(tmp_path: Path, attempt, record) -> None:
    with RunDirectory(tmp_path) as run:
        for name, sample in (("b", 0), ("a", 1), ("a", 0)):
            run.append(record(attempt("4"), id=name, sample=sample))
    assert [each.key for each in read_results(tmp_path)] == [("a", 0), ("a", 1), ("b", 0)]


def test_of_two_records_with_one_key_the_later_counts(tmp_path: Path, attempt, record) -> None:
    with RunDirectory(tmp_path) as run:
        run.append(record(attempt("5")))
        run.append(record(attempt("4")))
    assert [each.answer for each in read_results(tmp_path)] == ["4"]


def test_a_record_comes_back_as_it_was(tmp_path: Path, attempt, record, execution) -> None:
    earlier = attempt(None, mode="code", execution=execution("error"))
    written = record(attempt("4", mode="code", refinements=1, earlier=(earlier,)), id='naïve "id" \u2028')
    with RunDirectory(tmp_path) as run:
        run.append(written)
    assert list(read_results(tmp_path)) == [written]


def test_the_same_configuration_goes_on(tmp_path: Path) -> None:
    for notes in ({"started": "one"}, {"started": "two"}):
        with RunDirectory(tmp_path) as run:
            run.claim(IDENTITY, notes)
    assert read_config(tmp_path)["notes"] == {"started": "one"}


def test_another_configuration_is_refused_with_the_keys_that_differ(tmp_path: Path) -> None:
    with RunDirectory(tmp_path) as run:
        run.claim(IDENTITY)
    other = {"benchmark": {"name": "words", "digest": "xyz"}, "samples": 4, "seed": 1}
    with RunDirectory(tmp_path) as run, pytest.raises(RunError) as refused:
        run.claim(other)
    message = str(refused.value)
    assert 'benchmark.digest is "abc" there and "xyz" now' in message
    assert "samples is 1 there and 4 now" in message
    assert "seed is (absent) there and 1 now" in message
    assert "benchmark.name" not in message
    assert read_config(tmp_path)["identity"] == IDENTITY


def test_results_without_a_configuration_are_not_adopted(tmp_path: Path) -> None:
    (tmp_path / "results.jsonl").write_text("")
    with RunDirectory(tmp_path) as run, pytest.raises(RunError, match=r"no config\.json"):
        run.claim(IDENTITY)


def test_a_configuration_of_another_schema_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"schema": 99, "identity": {}}))
    with pytest.raises(RunError, match="schema 99"):
        read_config(tmp_path)


def test_a_second_user_is_refused_and_told_who_has_it(tmp_path: Path) -> None:
    with RunDirectory(tmp_path), pytest.raises(RunError, match=f"in use by another process \\(pid {os.getpid()}\\)"):
        RunDirectory(tmp_path)
    RunDirectory(tmp_path).close()


def test_a_killed_process_leaves_no_lock_behind(tmp_path: Path) -> None:
    script = f"""
        import time, pathlib
        from coda.optimize.rundir import RunDirectory
        run = RunDirectory(pathlib.Path({str(tmp_path)!r}))
        print("locked", flush=True)
        time.sleep(60)
    """
    holder = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "locked\n"
    with pytest.raises(RunError, match=f"pid {holder.pid}"):
        RunDirectory(tmp_path)
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    RunDirectory(tmp_path).close()


def test_a_half_written_last_line_is_removed_and_said(tmp_path: Path, attempt, record, caplog) -> None:
    with RunDirectory(tmp_path) as run:
        run.append(record(attempt("4"), id="a"))
        run.append(record(attempt("4"), id="b"))
    file = tmp_path / "results.jsonl"
    whole = file.read_bytes()
    file.write_bytes(whole[:-9])
    with RunDirectory(tmp_path) as run, caplog.at_level(logging.WARNING, "coda.run"):
        assert [each.id for each in run.resume()] == ["a"]
        run.append(record(attempt("4"), id="b"))
    assert "cut off by a crash" in caplog.text
    assert file.read_bytes() == whole


def test_a_reader_passes_over_a_half_written_last_line(tmp_path: Path, attempt, record) -> None:
    with RunDirectory(tmp_path) as run:
        run.append(record(attempt("4"), id="a"))
    with (tmp_path / "results.jsonl").open("a") as file:
        file.write('{"id": "b", "sam')
    assert [each.id for each in read_results(tmp_path)] == ["a"]


def test_a_damaged_line_in_the_middle_is_named(tmp_path: Path, attempt, record) -> None:
    with RunDirectory(tmp_path) as run:
        run.append(record(attempt("4"), id="a"))
    line = (tmp_path / "results.jsonl").read_text()
    (tmp_path / "results.jsonl").write_text(line + '{"id": 7}\n' + line)
    with pytest.raises(RunError, match=r"results\.jsonl, line 2: id: Input should be a valid string"):
        list(read_results(tmp_path))


def test_a_full_disk_stops_the_run_and_leaves_what_was_written(tmp_path: Path, attempt, record) -> None:
    """A limit on the file's size fails in mid-record as a full disk does."""
    with RunDirectory(tmp_path) as run:
        run.append(record(attempt("4"), id="a"))
    size = (tmp_path / "results.jsonl").stat().st_size
    script = f"""
        import pathlib, resource
        from coda.errors import RunError
        from coda.optimize.records import read_results
        from coda.optimize.rundir import RunDirectory
        path = pathlib.Path({str(tmp_path)!r})
        first = next(iter(read_results(path)))
        with RunDirectory(path) as run:
            resource.setrlimit(resource.RLIMIT_FSIZE, ({size + 40}, {size + 40}))
            try:
                run.append(first.model_copy(update={{"id": "b"}}))
            except RunError as error:
                print(error)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True)
    assert "could not be written: File too large" in done.stdout
    assert "Make room on the disk" in done.stdout
    assert (tmp_path / "results.jsonl").stat().st_size == size


def test_the_summary_is_replaced_whole(tmp_path: Path) -> None:
    class Figures(BaseModel):
        n: int

    with RunDirectory(tmp_path) as run:
        run.write_summary(Figures(n=1))
        run.write_summary(Figures(n=2))
    assert json.loads((tmp_path / "summary.json").read_text()) == {"n": 2}
    assert sorted(file.name for file in tmp_path.iterdir()) == [".lock", "summary.json"]


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="Name a folder that can be written"):
        RunDirectory(tmp_path / "file" / "run")


def test_reading_a_folder_without_results_says_what_to_give(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="Give a run directory"):
        list(read_results(tmp_path))
