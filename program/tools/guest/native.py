"""A compiled program, run for what it prints."""

from __future__ import annotations

import os
import resource
from typing import Any


def run(job: dict[str, Any], extra: list[int]) -> None:
    """Replace this process by the binary in the first extra descriptor. Never returns."""
    _, hard = resource.getrlimit(resource.RLIMIT_STACK)
    wanted = job["limits"]["address_space"] // 2
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_STACK, (allowed, hard))
    try:
        os.set_inheritable(extra[0], False)
        os.execve(extra[0], ["program"], dict(os.environ))  # noqa: S606
    except OSError as error:
        os.write(2, f"the program cannot be executed: {error.strerror}\n".encode())
    os._exit(127)
