r"""A process that compares mathematical expressions with math-verify, one after the other.

It is started by path, not imported: symbolic mathematics can hang, crash, or take all memory, and must then be ended
without anything else noticing. One JSON line ``[reference, answer, mutual]`` on stdin gives one line, ``1`` or ``0``,
on stdout. The kernel's alarm ends the process when a comparison takes too long; the end of stdin ends it too.

    python worker.py SECONDS MEMORY_MB
"""

from __future__ import annotations

import functools
import json
import os
import resource
import signal
import sys
from typing import Any


def main() -> None:
    """Answer requests until there are no more."""
    seconds, memory = float(sys.argv[1]), int(sys.argv[2]) << 20
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what a library prints must not pass for a reply

    from latex2sympy2_extended import NormalizationConfig
    from math_verify import LatexExtractionConfig, parse, verify

    normalization = NormalizationConfig(
        basic_latex=True, units=True, malformed_operators=True, nits=True, boxed="last", equations=False
    )
    config = [LatexExtractionConfig(normalization_config=normalization)]

    @functools.lru_cache(maxsize=1024)  # references come again with every answer
    def parsed(text: str) -> Any:
        return parse(rf"\boxed{{{text}}}", config, parsing_timeout=None)

    # Both libraries' own timeouts use signals and would take the alarm away: they are switched off.
    def same(reference: str, answer: str, mutual: bool) -> bool:
        gold, target = parsed(reference), parsed(answer)
        options = {"timeout_seconds": None, "allow_set_relation_comp": True}
        return bool(verify(gold, target, **options) and (not mutual or verify(target, gold, **options)))

    same("1", "x+1", True)  # builds the regular expressions and the parser's tables
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    replies.write("ready\n")
    for line in sys.stdin:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            verdict = same(*json.loads(line))
        except (Exception, RecursionError):
            verdict = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        replies.write("1\n" if verdict else "0\n")


if __name__ == "__main__":
    main()
