"""What the command line says of compiled pipelines: ``show``, ``diff``, ``export``, ``register``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from compiled import compiled
from local_engine import LocalEngine

from coda.optimize.artifact import BenchmarkReference, Gain, Manifest, ModeTrials, Policy, Score, Trials, save
from coda.program.conductor import Coda
from coda.program.settings import Settings

MANIFEST = Manifest(
    model="openai/test-model",
    profile="generic",
    benchmark=BenchmarkReference(name="words", digest="d"),
    optimizer="random-search",
    scores=(Score(program="compiled", split="test", n=60, accuracy=0.8, ci95=(0.68, 0.88)),),
    gains=(Gain(against="baseline", split="test", n=60, difference=0.1, ci95=(0.02, 0.2), gained=8, lost=1, p=0.039),),
)
POLICY = Policy(
    adapter="plain",
    modes={"math": ("code", "reason")},
    counts=(
        ModeTrials(task="math", adapter="plain", mode="code", successes=15, trials=18, readable=18),
        ModeTrials(task="math", adapter="plain", mode="reason", successes=2, trials=18, readable=16),
        ModeTrials(task="math", adapter="json", mode="code", successes=1, trials=6, readable=2),
    ),
    choices={"plan": {"on": Trials(successes=9, trials=18), "off": Trials(successes=12, trials=18)}},
)


@pytest.fixture
def art(tmp_path: Path) -> Path:
    save(compiled("plain"), tmp_path / "art", manifest=MANIFEST, policy=POLICY)
    return tmp_path / "art"


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """The same, with another instruction, a demo less, another setting and other counts."""
    program = compiled("plain", quorum=3)
    code = program.executor.code
    code.signature = code.signature.with_instructions("Write a program.")
    code.demos = code.demos[:1]
    policy = POLICY.model_copy(update={"counts": POLICY.counts[1:]})
    manifest = MANIFEST.model_copy(update={"model": "openai/other"})
    save(program, tmp_path / "other", manifest=manifest, policy=policy)
    return tmp_path / "other"


def test_show_says_what_was_learned_and_on_how_much_evidence(call: Any, art: Path) -> None:
    status, out, _ = call("show", "art")
    assert status == 0
    assert "Against baseline on 60 test problems: +10.0 points (+2.0 to +20.0), 8 gained, 1 lost, p = 0.039." in out
    assert "Adapter style plain: 17 of 36 right, 32% to 63%." in out
    assert "For math: code (15 of 18 right, 61% to 94%), then reason (2 of 18 right, 3% to 33%)." in out
    assert "Tried plan: on: 9 of 18 right, 29% to 71%; off: 12 of 18 right, 44% to 84%." in out
    assert call("show", "art", "--json")[0] == 0


def test_show_says_that_nothing_was_learned(call: Any, tmp_path: Path) -> None:
    save(Coda(), tmp_path / "bare", manifest=MANIFEST, policy=Policy())
    assert "Nothing was learned by calibration." in call("show", "bare")[1]


def test_show_refuses_what_was_changed(call: Any, art: Path) -> None:
    for name in ("program.json", "policy.json", "prompts/executor.code.md"):
        file = art / name
        kept = file.read_bytes()
        file.write_bytes(kept.replace(b"a", b"b", 1))
        status, out, err = call("show", "art")
        assert (status, out) == (2, "")
        assert f"{name} was changed after it was saved. Restore it" in err
        file.write_bytes(kept)


def test_another_model_and_another_version_are_said_and_used_all_the_same(call: Any, tmp_path: Path) -> None:
    program = Coda(Settings(adapter="plain", plan=False, paths=("reason",), quorum=1))
    manifest = MANIFEST.model_copy(update={"model": "openai/other", "versions": {"dspy": "3.0"}})
    save(program, tmp_path / "art", manifest=manifest, policy=Policy())
    with LocalEngine("Answer: 42") as server:
        engine = ("--model", "openai/test-model", "--api-base", server.api_base)
        status, out, err = call("solve", "What is 6 * 7?", *engine, "--program", "art")
    assert (status, out) == (0, "42\n")
    assert "compiled for openai/other, and openai/test-model may want other prompts" in err
    assert "compiled with dspy 3.0, and this is dspy" in err


def test_diff_says_in_what_two_pipelines_differ(call: Any, art: Path, other: Path) -> None:
    status, out, _ = call("diff", "art", "other")
    assert status == 0
    assert out.startswith("They send other requests.")
    assert "executor.code: instructions" in out
    assert "  +Write a program." in out
    assert "executor.code: demos, 1 shared" in out
    assert "quorum: 2 → 3" in out
    assert "counts.plain.math.code: 15/18 → (absent)" in out
    assert "model: openai/test-model → openai/other" in out
    assert "80.0% (68.0% to 88.0%), n = 60" in out


def test_diff_of_the_same_pipeline_says_so(call: Any, art: Path) -> None:
    assert call("diff", "art", "art")[1].startswith("Both send the same requests.")


def test_diff_json_is_one_document(call: Any, art: Path, other: Path) -> None:
    status, out, _ = call("diff", "art", "other", "--json")
    found = json.loads(out)
    assert status == 0
    assert found["same_program"] is False
    assert found["instructions"]["executor.code"][1] == "Write a program."
    assert found["settings"] == {"quorum": [2, 3]}
    assert len(found["demos"]["executor.code"]["only_first"]) == 1


def test_diff_of_a_folder_that_is_none_is_bad_input(call: Any, art: Path) -> None:
    status, _, err = call("diff", "art", "nowhere")
    assert status == 2
    assert "nowhere holds no compiled program" in err


def test_export_check_ends_with_1_where_prompts_are_not_what_is_sent(call: Any, art: Path) -> None:
    assert call("export", "art", "--check") == (0, "", "")
    (art / "prompts" / "executor.code.md").write_text("otherwise")
    status, out, err = call("export", "art", "--check")
    assert (status, out) == (1, "")
    assert err == "art/prompts/executor.code.md is not what the program renders now."


def test_export_check_of_an_export_compares_its_files(call: Any, art: Path, tmp_path: Path) -> None:
    for format in ("messages", "markdown", "jinja"):
        assert call("export", "art", "--format", format, "--out", format)[0] == 0
        assert call("export", "art", "--format", format, "--out", format, "--check") == (0, "", "")
        next((tmp_path / format).glob("executor.code.*")).write_text("otherwise")
        assert call("export", "art", "--format", format, "--out", format, "--check")[0] == 1
    assert call("export", "art", "--format", "python", "--out", "solve.py")[0] == 0
    assert call("export", "art", "--format", "python", "--out", "solve.py", "--check")[0] == 0
    (tmp_path / "solve.py").unlink()
    status, _, err = call("export", "art", "--format", "python", "--out", "solve.py", "--check")
    assert status == 1
    assert err == "solve.py is not what the program renders now."


def test_export_writes_an_mlflow_model(call: Any, art: Path, tmp_path: Path) -> None:
    status, out, _ = call("export", "art", "--format", "mlflow")
    assert (status, out) == (0, "art-mlflow\n")
    assert (tmp_path / "art-mlflow" / "MLmodel").is_file()
    status, _, err = call("export", "art", "--format", "mlflow", "--check")
    assert status == 2
    assert "--check" in err


def test_register_puts_the_pipeline_into_a_store_of_its_own(call: Any, art: Path, tmp_path: Path) -> None:
    status, out, _ = call("register", "art", "--tracking-uri", f"sqlite:///{tmp_path / 'own.db'}", "--json")
    found = json.loads(out)
    assert status == 0
    assert (found["uri"], found["champion"]) == ("models:/coda-test-model-words/1", True)
    assert found["why"].startswith("It is proven better than the uncompiled pipeline")
    assert "coda-test-model-words.executor.code/1" in found["prompts"]
    again, out, _ = call("register", "art", "--tracking-uri", f"sqlite:///{tmp_path / 'own.db'}")
    assert again == 0
    assert "models:/coda-test-model-words/1 (was there already)" in out
    assert "champion: yes. It is the champion already." in out
