"""What all tests need of their process."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """Take Ctrl-C as usual, even where a shell has started the tests in the background.

    Such a job ignores it, and so would all programs that the tests start in order to interrupt them.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
