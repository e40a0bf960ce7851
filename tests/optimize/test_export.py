"""Exported prompts give, byte for byte, the messages that the Engine receives."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

import pytest
from compiled import NASTY, compiled
from exported import Reader, jinja_reader, markdown_reader, messages_reader, python_reader
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from coda.errors import ArtifactError, UsageError
from coda.optimize.artifact import Manifest, Policy, check_prompts, load, save
from coda.optimize.export import export
from coda.optimize.prompts import Format, Slot, prompts_of
from coda.program.adapters import adapter_for
from coda.program.conductor import Coda
from coda.program.engine import Engine, EngineConfig
from coda.program.settings import AdapterStyle, Settings

STYLES: tuple[AdapterStyle, ...] = get_args(AdapterStyle)
FORMATS: tuple[Format, ...] = get_args(Format)


@cache
def program(style: AdapterStyle, demos: bool) -> Coda:
    return compiled(style, demos=demos)


@cache
def readers(style: AdapterStyle, demos: bool, format: Format) -> dict[str, Reader]:
    return readers_of(program(style, demos), format)


def readers_of(made: Coda, format: Format) -> dict[str, Reader]:
    """Export a program, and read the files back: a reader for each predictor."""
    names = [name for name, _ in made.named_predictors()]
    with TemporaryDirectory() as folder:
        out = Path(folder)
        export(made, format, out)
        match format:
            case "messages":
                return {name: messages_reader(out / f"{name}.json") for name in names}
            case "jinja":
                return {name: jinja_reader(out / f"{name}.jinja") for name in names}
            case "markdown":
                return {name: markdown_reader(out / f"{name}.md") for name in names}
            case "python":
                return {name: python_reader(out / "pipeline.py", name) for name in names}


def inputs_for(names: tuple[str, ...], text: str, other: str) -> dict[str, Any]:
    """A problem, and the other inputs, which are text but for the number of paths."""
    return {name: 3 if name == "number_of_paths" else other if index else text for index, name in enumerate(names)}


texts = st.text(max_size=30) | st.sampled_from(
    ["{{ x }}", "{%", "a\r\nb", "[[ ## answer ## ]]", "🙂", "{{problem}}", NASTY]
)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("demos", [True, False], ids=["demos", "no-demos"])
@pytest.mark.parametrize("style", STYLES)
@given(text=texts.filter(str.strip), other=texts)
@examples(max_examples=25, deadline=None)
def test_every_format_gives_what_the_adapter_gives(
    style: AdapterStyle, demos: bool, format: Format, text: str, other: str
) -> None:
    for name, predictor in program(style, demos).named_predictors():
        inputs = inputs_for(tuple(predictor.signature.input_fields), text, other)
        expected = adapter_for(style).format(predictor.signature, predictor.demos, inputs)
        assert readers(style, demos, format)[name](**inputs) == expected


@pytest.mark.parametrize("format", FORMATS)
@given(nasty=texts, style=st.sampled_from(STYLES))
@examples(max_examples=15, deadline=None)
def test_instructions_and_demos_may_hold_anything(format: Format, nasty: str, style: AdapterStyle) -> None:
    made = compiled(style, nasty=nasty)
    name, predictor = "executor.code", made.executor.code
    inputs = {"problem": nasty or "?", "approach": nasty}
    expected = adapter_for(style).format(predictor.signature, predictor.demos, inputs)
    if (nasty or "?").strip():
        assert readers_of(made, format)[name](**inputs) == expected


# What the prompts say of themselves


def test_blank_input_goes_away_with_its_heading_in_the_plain_style() -> None:
    prompt = {each.name: each for each in prompts_of(Coda(Settings(adapter="plain")))}["executor.code"]
    assert prompt.messages[-1].parts == (
        Slot("problem"),
        Slot("approach", before="\n\nApproach:\n", optional=True),
    )


def test_blank_input_stays_in_the_other_styles() -> None:
    prompt = {each.name: each for each in prompts_of(Coda(Settings(adapter="fields")))}["executor.code"]
    assert [part for part in prompt.messages[-1].parts if isinstance(part, Slot)] == [Slot("problem"), Slot("approach")]


def test_missing_input_is_named() -> None:
    prompt = prompts_of(Coda(Settings()))[0]
    with pytest.raises(UsageError, match="needs the input 'number_of_paths'; given are: problem"):
        prompt.fill(problem="?")


@pytest.mark.parametrize("private", ["\ue000", "".join(map(chr, range(0xE000, 0xE100)))])
def test_prompt_may_hold_the_characters_that_mark_inputs_elsewhere(private: str) -> None:
    made = compiled(nasty=private)
    prompt = {each.name: each for each in prompts_of(made)}["executor.code"]
    code = made.executor.code
    inputs = {"problem": private, "approach": "none"}
    assert prompt.fill(**inputs) == adapter_for("fields").format(code.signature, code.demos, inputs)


def test_sampling_goes_along(tmp_path: Path) -> None:
    export(compiled(), "messages", tmp_path)
    executor = json.loads((tmp_path / "executor.code.json").read_text("utf-8"))
    verifier = json.loads((tmp_path / "verifier.compare.json").read_text("utf-8"))
    assert executor["parameters"] == {"temperature": 0.2, "max_tokens": 700}
    assert verifier["parameters"] == {"temperature": 0.0}


def test_markdown_says_what_a_prompt_is_for(tmp_path: Path) -> None:
    export(Coda(Settings(adapter="plain")), "markdown", tmp_path)
    page = (tmp_path / "executor.code.md").read_text("utf-8")
    assert page.startswith("# executor.code\n")
    assert "| adapter style | plain |" in page
    assert "| temperature | 0.7 |" in page
    assert "max_tokens" not in page
    assert "{{problem}}{{#approach}}\n\nApproach:\n{{approach}}{{/approach}}\n```\n" in page


# Files


def test_export_tells_which_files_it_wrote(tmp_path: Path) -> None:
    written = export(compiled(), "jinja", tmp_path / "new" / "folder")
    assert written == sorted(written, key=written.index)
    assert {path.name for path in written} == {f"{name}.jinja" for name, _ in compiled().named_predictors()}
    assert all(path.is_file() for path in written)


def test_folder_exports_what_its_program_does_with_the_same_engine(tmp_path: Path) -> None:
    manifest = Manifest(model="openai/Qwen3-8B", profile="qwen3", effort="off")
    save(compiled(), tmp_path / "art", manifest=manifest, policy=Policy())
    with Engine(EngineConfig(model="openai/Qwen3-8B", effort="off", api_base="http://127.0.0.1:9/v1")) as engine:
        program = load(tmp_path / "art", engine=engine)
        for format in FORMATS:
            one, other = export(tmp_path / "art", format, tmp_path / "a"), export(program, format, tmp_path / "b")
            assert [path.read_bytes() for path in one] == [path.read_bytes() for path in other]
    assert (tmp_path / "a" / "executor.code.md").read_text("utf-8").endswith(" /no_think\n```\n")


def test_folder_of_an_unknown_profile_exports_the_program_alone(tmp_path: Path) -> None:
    save(compiled(), tmp_path / "art", manifest=Manifest(model="m", profile="my own"), policy=Policy())
    one, other = export(tmp_path / "art", "jinja", tmp_path / "a"), export(compiled(), "jinja", tmp_path / "b")
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in other]


def test_unknown_format_is_named_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no export format 'yaml'. Choose one of: messages, markdown, jinja, python"):
        export(compiled(), "yaml", tmp_path)  # type: ignore[arg-type]


def test_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"Cannot write to .*file"):
        export(compiled(), "jinja", tmp_path / "file")


def test_check_finds_nothing_in_a_fresh_artefact(tmp_path: Path) -> None:
    save(compiled(), tmp_path / "art", manifest=Manifest(model="m", profile="generic"), policy=Policy())
    assert check_prompts(tmp_path / "art") == []


def test_check_names_prompts_that_are_not_what_the_program_sends(tmp_path: Path) -> None:
    save(compiled(), tmp_path / "art", manifest=Manifest(model="m", profile="generic"), policy=Policy())
    prompts = tmp_path / "art" / "prompts"
    (prompts / "executor.code.md").write_text("Be clever.")
    (prompts / "executor.code.json").unlink()
    (prompts / "extra.md").write_text("")
    assert check_prompts(tmp_path / "art") == ["executor.code.json", "executor.code.md", "extra.md"]
    with pytest.raises(ArtifactError, match=r"executor.code.md was changed"):
        export(tmp_path / "art", "jinja", tmp_path / "out")
