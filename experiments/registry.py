"""Compiled pipelines in MLflow's registries: the pipeline as a model, and its tuned prompts.

The model is an own ``pyfunc``, see `coda.experiments.served`. Besides that one and `coda.experiments.tracking`, no
module imports MLflow.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import warnings
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from coda import __version__
from coda.errors import TrackingError, UsageError
from coda.experiments.champion import Ruling, Scores, challenge, first_champion, scores_of
from coda.experiments.tracking import QUIET, TrackedRun
from coda.optimize.artifact import Manifest, describe, load, read_manifest
from coda.optimize.prompts import Prompt, Slot, prompts_of
from coda.program.conductor import Coda

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities.model_registry import ModelVersion

CODE = Path(__file__).with_name("served.py")
CHAMPION = "champion"
SCORES = "scores.json"
MODEL = "pipeline"
"""The model's folder among a run's artefacts."""

DIGEST, RUN, VERSION = "coda.artefact", "coda.run", "coda.model"
"""Tags: which artefact a version holds; which run registered a prompt, and the version that uses it."""

MOST_TEXT = 90_000
"""Characters of a prompt; the registry takes 100,000."""


@dataclass(frozen=True)
class Registration:
    """A pipeline in the registry.

    Attributes:
        name: The registered model.
        version: Its version that holds this pipeline.
        champion: Whether the alias ``champion`` stands on this version now.
        why: Why it does, or does not.
        prompts: The tuned prompts in the prompt registry, as ``NAME/VERSION``.
        known: Whether the version was there already.
    """

    name: str
    version: int
    champion: bool
    why: str
    prompts: tuple[str, ...]
    known: bool

    @property
    def uri(self) -> str:
        """What MLflow loads it by."""
        return f"models:/{self.name}/{self.version}"


def default_name(manifest: Manifest) -> str:
    """``coda-<model>-<benchmark>``, in characters that MLflow allows and without the folders of a local file."""
    benchmark = Path(manifest.benchmark.name).stem if manifest.benchmark is not None else "any"
    model = manifest.model.rpartition("/")[2].removesuffix(".gguf")
    return re.sub(r"[^A-Za-z0-9._-]+", "-", f"coda-{model}-{benchmark}")


def write_model(folder: Path, out: Path) -> None:
    """Write a compiled pipeline as an MLflow model, a folder that ``mlflow models serve -m`` takes.

    Args:
        folder: The compiled pipeline.
        out: The model's folder; an MLflow model that is there is replaced.

    Raises:
        ArtifactError: The pipeline cannot be loaded.
        UsageError: ``out`` holds something else.
    """
    load(folder)
    if out.exists() and any(out.iterdir() if out.is_dir() else [out]) and not (out / "MLmodel").is_file():
        raise UsageError(f"{out} holds other things than an MLflow model. Choose another place with --out.")
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    import mlflow.pyfunc
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, Schema

    shutil.rmtree(out, ignore_errors=True)
    asked = Schema([ColSpec("string", "problem"), ColSpec("string", "task", required=False)])
    given = Schema(
        [
            ColSpec("string", "answer", required=False),
            ColSpec("double", "confidence"),
            ColSpec("string", "stopped", required=False),
        ]
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*input example", UserWarning)  # it would be sent to the Engine
        mlflow.pyfunc.save_model(
            str(out),
            python_model=str(CODE),
            artifacts={"artefact": str(folder.resolve())},
            signature=ModelSignature(inputs=asked, outputs=given),
            pip_requirements=[f"coda-conductor=={__version__}"],
        )
    _forget_origin(out / "MLmodel", folder)


def _forget_origin(file: Path, folder: Path) -> None:
    """Leave no path of this machine in a model: MLflow notes two, and reads no more than the last part of one."""
    from mlflow.models import Model

    model = Model.load(str(file))
    flavor = model.flavors["python_function"]
    flavor["model_code_path"] = CODE.name
    flavor["artifacts"]["artefact"]["uri"] = folder.resolve().name
    model.save(str(file))


def register(
    folder: Path,
    run: TrackedRun,
    *,
    name: str | None = None,
    results: Path | None = None,
    force: bool = False,
) -> Registration:
    """Register a compiled pipeline and its tuned prompts.

    The same pipeline is registered once under a name; registering it again can still make it the champion.

    Args:
        folder: The compiled pipeline.
        run: The run that the model and the scores are logged with.
        name: The registered model; by default `default_name`.
        results: The run directory of an evaluation of this pipeline; with it, it can challenge a champion.
        force: Make it the champion without a proof.

    Raises:
        ArtifactError: The pipeline cannot be loaded.
        RunError: The results are not this pipeline's.
        TrackingError: MLflow's store failed, or takes no such name.
    """
    program, manifest = load(folder), read_manifest(folder)
    name = name or default_name(manifest)
    if not re.fullmatch(r"[A-Za-z0-9._-]+", name):
        raise UsageError(f"--name {name}: use letters, digits, '.', '_' and '-'.")
    scores = None if results is None else scores_of(results, program)
    registrar = _Registrar(name, digest(folder), scores, manifest, force)
    with TemporaryDirectory() as temporary:
        model = Path(temporary) / MODEL
        write_model(folder, model)
        tuned = _tuned(folder, program)
        found = run.act("registering the pipeline", lambda client, id: registrar.register(client, id, model, tuned))
    if found is None:
        raise TrackingError("The pipeline was not registered: MLflow's store failed. Its folder has everything.")
    return found


def digest(folder: Path) -> str:
    """A hash of what the pipeline is and was learned from, the same for the same program and policy."""
    files = read_manifest(folder).files
    return hashlib.sha256("".join(files[name] for name in ("program.json", "policy.json")).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class _Registrar:
    """One registration."""

    name: str
    digest: str
    scores: Scores | None
    manifest: Manifest
    force: bool

    def register(self, client: MlflowClient, run_id: str, model: Path, tuned: tuple[Prompt, ...]) -> Registration:
        _ensure_name(client, self.name)
        champion = _champion(client, self.name)
        known = self._known(client)
        if self.scores is not None:
            client.log_text(run_id, self.scores.model_dump_json(), SCORES)
        version = known or self._version(client, run_id, model)
        number = int(version.version)
        prompts = self._prompts(client, run_id, number, tuned) if known is None else _prompts_of(version)
        if self.scores is not None:  # the newest results of a version are what it is compared by
            client.set_model_version_tag(self.name, str(number), RUN, run_id)
        ruling = self._rule(client, champion, number)
        if ruling.champion:
            client.set_registered_model_alias(self.name, CHAMPION, str(number))
        return Registration(self.name, number, ruling.champion, ruling.why, prompts, known is not None)

    def _known(self, client: MlflowClient) -> ModelVersion | None:
        found = client.search_model_versions(f"name = '{self.name}'")
        return next((each for each in found if each.tags.get(DIGEST) == self.digest), None)

    def _version(self, client: MlflowClient, run_id: str, model: Path) -> ModelVersion:
        client.log_artifacts(run_id, str(model), MODEL)
        tags = {DIGEST: self.digest, RUN: run_id, "coda.version": __version__, "coda.compiled_for": self.manifest.model}
        source = f"{client.get_run(run_id).info.artifact_uri}/{MODEL}"
        return client.create_model_version(self.name, source, run_id, tags=tags, description=_described(self.manifest))

    def _prompts(self, client: MlflowClient, run_id: str, number: int, tuned: tuple[Prompt, ...]) -> tuple[str, ...]:
        """Register the tuned prompts, each with the way back to the version that uses it."""
        made = []
        for prompt in tuned:
            template = [{"role": each.role, "content": _template(each.parts)} for each in prompt.messages]
            if sum(len(each["content"]) for each in template) > MOST_TEXT:
                continue  # the artefact, logged with the model, has it whole
            found = client.register_prompt(
                f"{self.name}.{prompt.name}",
                template,
                commit_message=f"{prompt.name} of {self.name}, version {number}",
                tags={VERSION: f"models:/{self.name}/{number}", RUN: run_id, DIGEST: self.digest},
            )
            client.link_prompt_version_to_run(run_id, found)
            made.append(f"{found.name}/{found.version}")
        if made:
            client.set_model_version_tag(self.name, str(number), "coda.prompts", " ".join(made))
        return tuple(made)

    def _rule(self, client: MlflowClient, champion: ModelVersion | None, number: int) -> Ruling:
        if champion is not None and int(champion.version) == number:
            return Ruling(True, "It is the champion already.")
        if self.force:
            return Ruling(True, "It was made the champion without a proof, as asked.")
        if champion is None:
            return first_champion(self.manifest)
        return challenge(self.scores, _scores_of(client, champion), int(champion.version))


def _ensure_name(client: MlflowClient, name: str) -> None:
    from mlflow.exceptions import MlflowException

    try:
        client.create_registered_model(name)
    except MlflowException as error:
        if error.error_code != "RESOURCE_ALREADY_EXISTS":
            raise


def _champion(client: MlflowClient, name: str) -> ModelVersion | None:
    alias = client.get_registered_model(name).aliases.get(CHAMPION)
    return None if alias is None else client.get_model_version(name, str(alias))


def _scores_of(client: MlflowClient, version: ModelVersion) -> Scores | None:
    """The scores that were logged when a version was registered."""
    run_id = version.tags.get(RUN) or version.run_id
    if run_id is None or SCORES not in {file.path for file in client.list_artifacts(run_id)}:
        return None
    with TemporaryDirectory() as folder:
        return Scores.model_validate_json(Path(client.download_artifacts(run_id, SCORES, folder)).read_text("utf-8"))


def _prompts_of(version: ModelVersion) -> tuple[str, ...]:
    return tuple(version.tags.get("coda.prompts", "").split())


def _tuned(folder: Path, program: Coda) -> tuple[Prompt, ...]:
    """The prompts that compiling has changed: other instructions than as written, or demos."""
    changed = {each.name for each in describe(folder).predictors if each.tuned or each.demos}
    return tuple(prompt for prompt in prompts_of(program) if prompt.name in changed)


def _template(parts: tuple[Any, ...]) -> str:
    """A message with MLflow's variables in the place of the slots."""
    return "".join(f"{part.before}{{{{{part.name}}}}}" if isinstance(part, Slot) else part for part in parts)


def _described(manifest: Manifest) -> str:
    scores = [f"{each.program} on {each.split}: {each.accuracy:.1%} of {each.n}" for each in manifest.scores]
    return "; ".join([f"Compiled for {manifest.model} with {manifest.optimizer or 'no optimizer'}", *scores])
