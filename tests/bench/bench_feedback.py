"""Does stage feedback help GEPA? Tried on an Engine with two known weaknesses (``tests/support/weak_engine.py``).

    PYTHONPATH=tests/support python tests/bench/bench_feedback.py --seeds 5

Prints, for each number of rollouts, in how many of the runs GEPA's choice mends the planner (X), the reflector (Y),
and both.
"""

from __future__ import annotations

import argparse

from local_engine import LocalEngine
from weak_engine import X, Y, found, weak


def main() -> None:
    """Compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rollouts", type=int, nargs="+", default=[60, 120, 240, 480])
    arguments = parser.parse_args()
    print(f"{'rollouts':>9} {'feedback':>9} {'X':>6} {'Y':>6} {'both':>6}   of {arguments.seeds} runs")
    with LocalEngine(weak, keep=False) as server:
        for rollouts in arguments.rollouts:
            for by_stage in (True, False):
                runs = [
                    found(server.api_base, rollouts=rollouts, seed=seed, by_stage=by_stage)
                    for seed in range(arguments.seeds)
                ]
                with_x, with_y = sum(X in run for run in runs), sum(Y in run for run in runs)
                counts = (with_x, with_y, sum(len(run) == 2 for run in runs))
                kind = "by stage" if by_stage else "final"
                print(f"{rollouts:>9} {kind:>9} " + " ".join(f"{count:>6}" for count in counts), flush=True)


if __name__ == "__main__":
    main()
