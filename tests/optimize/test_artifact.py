"""An artefact gives back the program that was saved, and nothing else."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import dspy
import pytest
from compiled import compiled
from hypothesis import given, settings
from hypothesis import strategies as st

from coda.errors import ArtifactError
from coda.optimize.artifact import (
    Manifest,
    Policy,
    Score,
    ensure_replaceable,
    load,
    read_manifest,
    read_policy,
    save,
)
from coda.optimize.artifact import folder as on_disk
from coda.optimize.artifact.documents import SCHEMA_VERSION, ModeTrials
from coda.optimize.artifact.migrations import MIGRATIONS, Documents
from coda.optimize.artifact.state import program_of, state_of
from coda.optimize.identity import identify
from coda.optimize.prompts import prompts_of
from coda.program.conductor import Coda
from coda.program.engine import Engine, EngineConfig
from coda.program.settings import AdapterStyle, Settings
from coda.signatures.planning import PlannedPath

STYLES: tuple[AdapterStyle, ...] = get_args(AdapterStyle)
MANIFEST = Manifest(
    model="openai/some-model",
    profile="generic",
    scores=(Score(program="compiled", split="test", n=60, accuracy=0.8, ci95=(0.68, 0.88)),),
)
POLICY = Policy(
    adapter="plain",
    modes={"math": ("code", "reason")},
    counts=(ModeTrials(task="math", adapter="plain", mode="code", successes=5, trials=6),),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A saved artefact."""
    save(compiled(), tmp_path / "art", manifest=MANIFEST, policy=POLICY)
    return tmp_path / "art"


def change(folder: Path, name: str, edit: Callable[[dict[str, Any]], object], *, cover_up: bool = True) -> None:
    """Edit a file as someone would who also knows how to mend the hashes."""
    document = json.loads((folder / name).read_text("utf-8"))
    edit(document)
    (folder / name).write_text(json.dumps(document), "utf-8")
    if cover_up and name != "manifest.json":
        digest = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        change(folder, "manifest.json", lambda manifest: manifest["files"].update({name: digest}))


# What comes back


@pytest.mark.parametrize("style", STYLES)
def test_loaded_program_sends_the_messages_of_the_saved_one(style: AdapterStyle, tmp_path: Path) -> None:
    program = compiled(style)
    save(program, tmp_path / "art", manifest=MANIFEST, policy=POLICY)
    assert prompts_of(load(tmp_path / "art")) == prompts_of(program)


def test_loaded_program_counts_as_the_same_in_a_run_directory(folder: Path) -> None:
    assert identify(load(folder)) == identify(compiled())


def test_all_settings_come_back(tmp_path: Path) -> None:
    program = compiled(written_reasoning=False, plan=False, paths=("code",), per_problem={"max_calls": 9})
    save(program, tmp_path / "art", manifest=MANIFEST, policy=POLICY)
    assert load(tmp_path / "art").settings == program.settings


def test_sampling_comes_back_which_dspy_itself_drops(folder: Path) -> None:
    assert load(folder).executor.sampling.temperature == 0.2
    assert load(folder).executor.sampling.max_tokens == 700


def test_demo_comes_back_with_its_typed_values(folder: Path) -> None:
    (demo,) = load(folder).planner.propose.demos
    assert demo.paths == compiled().planner.propose.demos[0].paths
    assert isinstance(demo.paths[0], PlannedPath)


def test_demo_that_lacks_an_input_still_lacks_it(folder: Path) -> None:
    first, second = load(folder).executor.code.demos
    assert "approach" not in first
    assert second.approach == ""


def test_demo_leaves_behind_what_its_signature_does_not_know(tmp_path: Path) -> None:
    program = Coda(Settings())
    program.executor.code.demos = [dspy.Example(problem="?", program="1", answer="the reference", example=object())]
    save(program, tmp_path / "art", manifest=MANIFEST, policy=POLICY)
    assert load(tmp_path / "art").executor.code.demos[0].toDict() == {"problem": "?", "program": "1"}


def test_description_that_an_optimizer_changed_comes_back(tmp_path: Path) -> None:
    program = Coda(Settings())
    code = program.executor.code
    code.signature = code.signature.with_updated_fields("program", desc="one line of Python")
    save(program, tmp_path / "art", manifest=MANIFEST, policy=POLICY)
    assert prompts_of(load(tmp_path / "art")) == prompts_of(program)


values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(0, 1) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)
planned = st.builds(
    PlannedPath, mode=st.sampled_from(["reason", "code"]), approach=st.text(max_size=9), confidence=st.floats(0, 1)
)
partial = st.fixed_dictionaries({"mode": st.just("code"), "approach": st.text(max_size=9)})


@given(
    style=st.sampled_from(["fields", "json"]),
    demo=st.fixed_dictionaries(
        {
            "problem": st.text(max_size=20) | st.integers() | st.dictionaries(st.text(max_size=4), values, max_size=2),
            "difficulty": st.sampled_from(["easy", "hard"]),
        },
        optional={
            "number_of_paths": st.integers() | st.text(max_size=3),
            "paths": st.lists(planned, max_size=2) | st.lists(partial, max_size=2) | st.text(max_size=9),
        },
    ),
)
@settings(max_examples=60, deadline=None)
def test_any_demo_renders_the_same_after_its_way_through_json(style: AdapterStyle, demo: dict[str, Any]) -> None:
    program = Coda(Settings(adapter=style))
    program.planner.propose.demos = [dspy.Example(**demo)]
    again = type(state_of(program)).model_validate_json(state_of(program).model_dump_json())
    assert prompts_of(program_of(again)) == prompts_of(program)


def test_manifest_and_policy_come_back(folder: Path) -> None:
    found = read_manifest(folder)
    assert found.scores == MANIFEST.scores
    assert found.versions.keys() == {"coda", "dspy", "python"}
    assert read_policy(folder) == POLICY


def test_moved_folder_gives_the_same_messages_in_a_fresh_process(folder: Path, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere" / "copy"
    shutil.copytree(folder, moved)
    script = (
        "import sys, json; from pathlib import Path; from coda.optimize.artifact import load;"
        "from coda.optimize.prompts import prompts_of;"
        "print(json.dumps([p.fill(**{n: 'x' for n in p.inputs}) for p in prompts_of(load(Path(sys.argv[1])))]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(moved)], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    expected = [prompt.fill(**dict.fromkeys(prompt.inputs, "x")) for prompt in prompts_of(compiled())]
    assert json.loads(done.stdout) == expected


# What is on the disk


def test_folder_holds_json_and_the_prompts_with_their_hashes(folder: Path) -> None:
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    hashes = read_manifest(folder).files
    assert there == {"manifest.json", *hashes}
    assert {"program.json", "policy.json", "prompts/executor.code.md", "prompts/executor.code.json"} <= there
    assert all(hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest for name, digest in hashes.items())


def test_same_program_gives_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    save(load(folder), tmp_path / "again", manifest=MANIFEST, policy=read_policy(folder))
    for name in ("program.json", "policy.json"):
        assert (tmp_path / "again" / name).read_bytes() == (folder / name).read_bytes()


def test_key_is_in_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "sk-secret-value")
    config = EngineConfig(model="openai/m", api_base="http://secret-host/v1", api_key_env="SOME_KEY")
    with Engine(config) as engine:
        program = Coda(engine=engine)
        program.executor.code.lm = dspy.LM("openai/m", api_key="sk-secret-value", api_base="http://secret-host/v1")
        save(program, tmp_path / "art", manifest=MANIFEST, policy=POLICY)
    written = b"".join(path.read_bytes() for path in (tmp_path / "art").rglob("*") if path.is_file())
    assert b"sk-secret-value" not in written
    assert b"secret-host" not in written
    assert load(tmp_path / "art").executor.code.lm is None


def test_sampling_options_of_a_predictor_are_refused_rather_than_lost(tmp_path: Path) -> None:
    program = Coda(Settings())
    program.executor.code.config = {"temperature": 1.5}
    with pytest.raises(ArtifactError, match=r"executor.code has sampling options of its own \(temperature\)"):
        save(program, tmp_path / "art", manifest=MANIFEST, policy=POLICY)


def test_older_artefact_is_replaced_as_a_whole(folder: Path) -> None:
    save(compiled("plain", demos=False), folder, manifest=MANIFEST, policy=POLICY)
    assert load(folder).settings.adapter == "plain"
    assert [path.name for path in folder.parent.iterdir()] == ["art"]


def test_empty_folder_may_be_used(tmp_path: Path) -> None:
    (tmp_path / "art").mkdir()
    save(compiled(), tmp_path / "art", manifest=MANIFEST, policy=POLICY)
    assert load(tmp_path / "art")


@pytest.mark.parametrize("name", ["thesis.txt", "prompts/mine.md"])
def test_folder_with_anything_else_in_it_is_left_alone(folder: Path, name: str) -> None:
    (folder / name).write_text("mine")
    with pytest.raises(ArtifactError, match=f"holds other things than a compiled program .*{Path(name).name}"):
        save(compiled(), folder, manifest=MANIFEST, policy=POLICY)
    with pytest.raises(ArtifactError, match="holds other things"):
        ensure_replaceable(folder)
    assert (folder / name).read_text() == "mine"


def test_file_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "art").write_text("mine")
    with pytest.raises(ArtifactError, match="is a file"):
        save(compiled(), tmp_path / "art", manifest=MANIFEST, policy=POLICY)


def test_old_artefact_stays_when_the_new_one_cannot_be_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, content: bytes) -> int:
        if path.name == "policy.json":
            raise OSError(28, "No space left on device")
        return path.open("wb").write(content)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(ArtifactError, match=r"Cannot write .*art: No space left on device"):
        save(compiled("plain"), folder, manifest=MANIFEST, policy=POLICY)
    assert load(folder).settings.adapter == "fields"
    assert [path.name for path in folder.parent.iterdir()] == ["art"]


# What is refused


def test_folder_that_is_no_artefact(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"holds no compiled program: manifest.json: No such file"):
        load(tmp_path)
    (tmp_path / "manifest.json").write_text('{"name": "a web app"}')
    with pytest.raises(ArtifactError, match="is not that of a compiled program"):
        load(tmp_path)
    (tmp_path / "manifest.json").write_text("[")
    with pytest.raises(ArtifactError, match="is not valid JSON"):
        load(tmp_path)


@pytest.mark.parametrize("version", [99, 0, "1", None, True])
def test_unknown_schema_says_what_to_do(folder: Path, version: object) -> None:
    change(folder, "manifest.json", lambda manifest: manifest.update(schema_version=version))
    with pytest.raises(ArtifactError, match=r"schema version .* reads up to 2.*pip install -U coda-conductor"):
        load(folder)


def test_any_changed_file_is_refused(folder: Path) -> None:
    for name in read_manifest(folder).files:
        original = (folder / name).read_bytes()
        (folder / name).write_bytes(original + b" ")
        with pytest.raises(ArtifactError, match=f"{name} was changed after it was saved"):
            load(folder)
        (folder / name).write_bytes(original)
    assert load(folder)


def test_missing_file_is_refused(folder: Path) -> None:
    (folder / "program.json").unlink()
    with pytest.raises(ArtifactError, match=r"program.json cannot be read: No such file"):
        load(folder)


@pytest.mark.parametrize("name", ["program.json", "policy.json"])
def test_file_cannot_be_left_out_of_the_hashes(folder: Path, name: str) -> None:
    change(folder, "manifest.json", lambda manifest: manifest["files"].pop(name))
    with pytest.raises(ArtifactError, match="does not name all files"):
        load(folder)


@pytest.mark.parametrize("name", ["/etc/passwd", "../outside.json", "prompts/../../outside.json"])
def test_manifest_cannot_name_files_elsewhere(folder: Path, name: str) -> None:
    change(folder, "manifest.json", lambda manifest: manifest["files"].update({name: "0"}))
    with pytest.raises(ArtifactError, match="names a file elsewhere"):
        load(folder)


HOSTILE = {"api_base": "http://attacker/v1"}


@pytest.mark.parametrize(
    "edit",
    [
        lambda program: program["predictors"]["executor.code"].update(config=HOSTILE),
        lambda program: program["predictors"]["executor.code"].update(lm=HOSTILE),
        lambda program: program["settings"].update(HOSTILE),
        lambda program: program["settings"]["executor_stage"].update(HOSTILE),
        lambda program: program["predictors"].update(lm=HOSTILE),
        lambda program: program.update(config=HOSTILE),
    ],
)
def test_key_that_could_redirect_requests_is_refused(folder: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    change(folder, "program.json", edit)
    with pytest.raises(ArtifactError, match=r"program\.json: .*(not permitted|valid dictionary|Field required)"):
        load(folder)


@pytest.mark.parametrize(("name", "read"), [("manifest.json", read_manifest), ("policy.json", read_policy)])
def test_unknown_name_in_the_other_files_is_refused_too(
    folder: Path, name: str, read: Callable[[Path], object]
) -> None:
    change(folder, name, lambda document: document.update(config=HOSTILE))
    with pytest.raises(ArtifactError, match=rf"{name}: config: .*not permitted"):
        read(folder)


def test_demo_with_a_field_that_does_not_exist_is_refused(folder: Path) -> None:
    change(folder, "program.json", lambda p: p["predictors"]["executor.code"]["demos"][0].update(HOSTILE))
    with pytest.raises(ArtifactError, match=r"demo of executor.code holds fields that its signature has not: api_base"):
        load(folder)


def test_other_signature_is_refused_with_its_fields(folder: Path) -> None:
    def rename(program: dict[str, Any]) -> None:
        code = program["predictors"]["executor.code"]
        code.update(signature="0" * 12, fields={"task": "", "program": ""})

    change(folder, "program.json", rename)
    with pytest.raises(
        ArtifactError,
        match=r"prompts of executor.code were made for another signature: "
        r"its fields were task, program and are now problem, approach, program",
    ):
        load(folder)


def test_fields_are_matched_by_name_not_by_position(folder: Path) -> None:
    def turn_round(program: dict[str, Any]) -> None:
        code = program["predictors"]["executor.code"]
        code["fields"] = dict(reversed(code["fields"].items()))

    change(folder, "program.json", turn_round)
    assert prompts_of(load(folder)) == prompts_of(compiled())


def test_program_with_other_predictors_is_refused(folder: Path) -> None:
    change(folder, "program.json", lambda program: program["predictors"].pop("verifier.compare"))
    with pytest.raises(ArtifactError, match=r"a program with other predictors \(verifier.compare\)"):
        load(folder)


def test_description_of_an_unknown_field_is_refused(folder: Path) -> None:
    change(folder, "program.json", lambda p: p["predictors"]["executor.code"]["fields"].update(HOSTILE))
    with pytest.raises(ArtifactError, match=r"executor.code.*api_base"):
        load(folder)


# What is allowed, with a word about it


def test_nothing_is_said_where_nothing_differs() -> None:
    assert MANIFEST.caveats(model="openai/some-model") == []


def test_other_model_or_version_is_said() -> None:
    manifest = MANIFEST.model_copy(update={"versions": {"coda": "0.0.9", "dspy": "3.0", "python": "3.10.1"}})
    model, coda, dspy_, python = manifest.caveats(model="openai/other")
    assert model == "It was compiled for openai/some-model, and openai/other may want other prompts: measure it."
    assert coda.startswith("It was compiled with coda 0.0.9, and this is coda ")
    assert dspy_.startswith("It was compiled with dspy 3.0, and this is dspy ")
    assert python.startswith("It was compiled with python 3.10.1, and this is python 3.")


VERSION_1 = Path(__file__).with_name("version-1")
"""An artefact that the last coda with schema version 1 wrote."""


def test_artefact_of_schema_1_is_brought_forward(tmp_path: Path) -> None:
    program = load(VERSION_1)
    settings = program.settings
    assert (settings.adapter, settings.paths, settings.quorum) == ("json", ("code", "reason"), 3)
    assert (settings.straight, settings.max_rounds, settings.written_tests) == (False, 1, False)
    assert program.executor.sampling.max_tokens == 700
    assert program.executor.code.signature.instructions.startswith("Write a short Python program")
    assert program.executor.code.demos[0].program == "print(1 + 1)"
    (demo,) = program.planner.propose.demos
    assert [step.action for step in demo.paths[0].steps] == ["read the numbers", "add"]
    assert program.verifier.judge.signature.instructions == Coda().verifier.judge.signature.instructions
    assert read_manifest(VERSION_1).schema_version == 2
    assert read_policy(VERSION_1).counts[0].successes == 5
    save(program, tmp_path / "again", manifest=read_manifest(VERSION_1), policy=read_policy(VERSION_1))
    assert prompts_of(load(tmp_path / "again")) == prompts_of(program)


def test_executor_of_schema_1_sends_the_messages_that_it_exported_then() -> None:
    (prompt,) = (each for each in prompts_of(load(VERSION_1)) if each.name == "executor.code")
    exported = json.loads((VERSION_1 / "prompts" / "executor.code.json").read_text("utf-8"))["messages"]
    assert prompt.fill(problem="?", approach="")[:-1] == exported[:-1]


def test_old_artefact_is_whole_or_refused_too(tmp_path: Path) -> None:
    shutil.copytree(VERSION_1, tmp_path / "art")
    change(tmp_path / "art", "program.json", lambda program: program.pop("predictors"))
    with pytest.raises(ArtifactError, match="not what schema version 1 holds"):
        load(tmp_path / "art")
    change(tmp_path / "art", "program.json", lambda program: program.update(predictors={}), cover_up=False)
    with pytest.raises(ArtifactError, match=r"program\.json was changed after it was saved"):
        load(tmp_path / "art")


def test_steps_of_migration_follow_each_other(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def rename(documents: Documents) -> Documents:
        settings = documents["program.json"]["settings"]
        settings["quorum"] = settings.pop("agreement")
        return {**documents, "manifest.json": {**documents["manifest.json"], "schema_version": 3}}

    change(folder, "program.json", lambda program: program["settings"].update(agreement=3))
    change(folder, "program.json", lambda program: program["settings"].pop("quorum"))
    monkeypatch.setattr(on_disk, "SCHEMA_VERSION", 3)
    monkeypatch.setitem(MIGRATIONS, 2, rename)
    assert load(folder).settings.quorum == 3
    assert read_manifest(folder).schema_version == 3


def test_every_older_schema_has_a_step() -> None:
    assert sorted(MIGRATIONS) == list(range(1, SCHEMA_VERSION))
