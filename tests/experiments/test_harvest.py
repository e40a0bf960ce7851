"""Training sets: the common shapes, one split for each problem, and nothing from a test split unasked."""

from __future__ import annotations

from pathlib import Path

import pytest
from datasets import load_dataset
from synthetic_run import Synthetic, make_run

from coda.errors import UsageError
from coda.experiments.harvest import harvest


@pytest.mark.parametrize("kind", ["preference", "judge", "refinement", "reflection"])
def test_sets_load_with_datasets_and_no_problem_is_in_two_splits(tmp_path: Path, kind: str) -> None:
    make_run(tmp_path / "run", Synthetic(problems=60))
    counts = harvest([tmp_path / "run"], tmp_path / "out", validation=0.3)
    loaded = load_dataset(str(tmp_path / "out" / kind), cache_dir=str(tmp_path / "cache"))
    assert {f"{kind}/{split}": len(rows) for split, rows in loaded.items()} == {
        name: count for name, count in counts.items() if name.startswith(f"{kind}/")
    }
    ids = [{row["provenance"]["id"] for row in loaded[split]} for split in ("train", "validation")]
    assert ids[0] & ids[1] == set()
    shape = {"prompt", "chosen", "rejected"} if kind == "preference" else {"messages"}
    assert set(loaded["train"].column_names) == shape | {"provenance"}


def test_a_fix_follows_the_real_feedback(tmp_path: Path) -> None:
    make_run(tmp_path / "run", Synthetic(problems=60))
    harvest([tmp_path / "run"], tmp_path / "out", validation=0.0)
    rows = load_dataset(str(tmp_path / "out" / "refinement"), cache_dir=str(tmp_path / "cache"))["train"]
    assert [message["role"] for message in rows[0]["messages"]] == ["user", "assistant", "user", "assistant"]
    assert "NameError" in rows[0]["messages"][2]["content"]


@pytest.mark.parametrize("split", ["test", "all"])
def test_a_test_split_is_refused_unless_allowed(tmp_path: Path, split: str) -> None:
    make_run(tmp_path / "run", Synthetic(split=split))
    with pytest.raises(UsageError, match="--allow-test"):
        harvest([tmp_path / "run"], tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert harvest([tmp_path / "run"], tmp_path / "out", allow_test=True)
