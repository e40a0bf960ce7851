"""One sandbox for all tests of the tools; without bubblewrap they are skipped."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

from coda.program.tools.sandbox import Sandbox

settings.register_profile("calm", deadline=None)
settings.load_profile("calm")


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    sandbox = Sandbox()
    if not sandbox.available:
        pytest.skip(sandbox.why)
    yield sandbox
    sandbox.close()
