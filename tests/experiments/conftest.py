"""One MLflow store for all tests of tracking: a new one takes seconds to initialise."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from coda.experiments.tracking import Tracker

if TYPE_CHECKING:
    from mlflow import MlflowClient


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an MLflow store that is ready."""
    folder = tmp_path_factory.mktemp("mlflow")
    with Tracker(directory=folder).run("first"):
        pass
    return folder


@pytest.fixture
def client(store: Path) -> MlflowClient:
    """A client that reads the store independently of the tracker."""
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=f"sqlite:///{store / 'mlflow.db'}")
