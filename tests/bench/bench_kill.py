"""A long evaluation that is killed again and again: does it end as one that was left alone does?

Runs ``coda eval`` in a process of its own against a local engine, once undisturbed, and once with ``kill -9`` at random
points, each time followed by the same command. Then compares the records, and the requests that the server saw.

    python tests/bench/bench_kill.py --problems 10000 --kills 20
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from local_engine import LocalEngine

from coda.optimize.records import Record, read_results

PARALLEL = 16
PATHS = 3
SETTINGS = {"adapter": '"plain"', "paths": '["reason", "reason", "reason"]', "max_paths": PATHS, "quorum": PATHS}
"""No attempt is given up because others agree: which ones those are would depend on the time."""

SEEN_TWICE = re.compile(r"What is (\d+) \+ (\d+)")


def answered(messages: list[dict[str, Any]]) -> str:
    """A right answer or a wrong one, fixed by what is asked."""
    asked = json.dumps(messages)
    if "number of paths" in asked.lower():
        return "1. reason: count on\n2. reason: add the tens first\n3. reason: draw a line"
    first, second = SEEN_TWICE.findall(asked)[-1]
    error = hashlib.sha256(asked.encode()).digest()[0] % 3 == 0
    return f"It is plain to see.\nAnswer: {int(first) + int(second) + error}"


class CountingEngine(LocalEngine):
    """Keeps the hash of every request instead of its body."""

    def __init__(self, latency: float) -> None:
        super().__init__(answered, latency=latency, keep=False, faults=self._note)
        self.seen: Counter[bytes] = Counter()

    def _note(self, _: int, body: dict[str, Any]) -> None:
        self.seen[hashlib.sha256(json.dumps(body, sort_keys=True).encode()).digest()] += 1


@dataclass
class Outcome:
    """What a run came to.

    Attributes:
        records: A hash of each record, without what differs from run to run: seconds, and who paid.
        requests: How often the server saw each request.
        memory: Resident MiB of the last command, by the number of results that were there.
    """

    records: dict[tuple[str, int], str]
    requests: Counter[bytes]
    kills: int = 0
    repaired: int = 0
    memory: list[tuple[int, float]] = field(default_factory=list)


class Run:
    """One run directory, worked on by commands that come and go."""

    def __init__(self, server: CountingEngine, file: Path, run_dir: Path) -> None:
        self.run_dir = run_dir
        self.log = run_dir.with_suffix(".log")
        settings = [part for name, value in SETTINGS.items() for part in ("--set", f"{name}={value}")]
        engine = ["--model", "openai/test-model", "--api-base", server.api_base, "--seed", "7"]
        places = ["--run-dir", str(run_dir), "--parallel", str(PARALLEL), "--split", "all", "--json"]
        self.command = [sys.executable, "-m", "coda.cli", "eval", str(file), *engine, *places, *settings]
        self._known = (0, 0)

    def start(self) -> subprocess.Popen[bytes]:
        """Begin, or go on."""
        with self.log.open("ab") as log:
            return subprocess.Popen(self.command, stdout=log, stderr=log, cwd=self.run_dir.parent)

    def results(self) -> int:
        """Lines of ``results.jsonl``; only what is new is read."""
        lines, place = self._known
        file = self.run_dir / "results.jsonl"
        if file.exists() and file.stat().st_size > place:
            with file.open("rb") as stream:
                stream.seek(place)
                new = stream.read()
            whole = new.rfind(b"\n") + 1
            self._known = lines + new.count(b"\n"), place + whole
        return self._known[0]

    def follow(self, process: subprocess.Popen[bytes], until: int | None = None) -> list[tuple[int, float]]:
        """Watch a command until it ends, or until so many results are there; its memory on the way."""
        memory: list[tuple[int, float]] = []
        while process.poll() is None and (until is None or self.results() < until):
            memory.append((self.results(), resident(process.pid)))
            time.sleep(0.02 if until is not None else 0.2)
        if process.returncode not in (None, 0):
            raise SystemExit(f"the command failed with {process.returncode}:\n{self.log.read_text()[-2000:]}")
        return memory


def resident(pid: int) -> float:
    """MiB of a process in memory; 0 when it has gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    except (OSError, IndexError):
        return 0.0


def measured(server: CountingEngine, file: Path, run_dir: Path, kills: list[int], chance: random.Random) -> Outcome:
    """Run to the end, killed whenever about so many results are there."""
    server.seen = Counter()
    run = Run(server, file, run_dir)
    done = 0
    for place in kills:
        process = run.start()
        run.follow(process, until=place)
        time.sleep(chance.random() * 0.05)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.wait()
            done += 1
    memory = run.follow(run.start())
    # What the killed commands had asked may still be under way.
    time.sleep(server.latency + 0.2)
    records = {record.key: essence(record) for record in read_results(run_dir)}
    return Outcome(records, server.seen, done, run.log.read_text().count("cut off by a crash"), memory)


def essence(record: Record) -> str:
    """A hash of all of a record but its cost and time."""
    story = record.model_dump_json(exclude={"seconds": True, "usage": True, "stages": True})
    return hashlib.sha256(story.encode()).hexdigest()


def compared(whole: Outcome, killed: Outcome) -> dict[str, Any]:
    """What is the same, and what a kill costs: requests that were under way when it came, and no other."""
    repeated = sum(count - 1 for count in killed.requests.values())
    total = len(whole.records)
    early = [size for n, size in whole.memory if n >= 0.2 * total] or [0.0]
    late = [size for n, size in whole.memory if 0.2 * total <= n <= 0.95 * total] or [0.0]
    return {
        "records": total,
        "records that differ": sum(killed.records.get(key) != story for key, story in whole.records.items())
        + len(killed.records.keys() - whole.records.keys()),
        "requests, undisturbed": sum(whole.requests.values()),
        "repeated, undisturbed": sum(count - 1 for count in whole.requests.values()),
        "requests, killed": sum(killed.requests.values()),
        "requests that differ": len(whole.requests.keys() ^ killed.requests.keys()),
        "kills": killed.kills,
        "asked again for each kill": round(repeated / max(1, killed.kills), 2),
        "in flight at most": PARALLEL * PATHS,
        "half lines repaired": killed.repaired,
        "MiB at 20 %, at 95 %, at the end": [round(early[0]), round(late[-1]), round(early[-1])],
    }


def main() -> None:
    """Run both and compare; the exit status says whether they agree."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--latency", type=float, default=0.005)
    parser.add_argument("--seed", type=int, default=0, help="of the points at which it is killed")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    kills = sorted(chance.randrange(options.problems) for _ in range(options.kills))
    with tempfile.TemporaryDirectory() as folder, CountingEngine(options.latency) as server:
        file = Path(folder) / "sums.jsonl"
        rows = ({"problem": f"What is {i} + {i + 3}?", "answer": str(2 * i + 3)} for i in range(options.problems))
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        started = time.perf_counter()
        whole = measured(server, file, Path(folder) / "whole", [], chance)
        half = time.perf_counter()
        killed = measured(server, file, Path(folder) / "killed", kills, chance)
        found = compared(whole, killed)
        found["seconds"] = [round(half - started), round(time.perf_counter() - half)]
    for name, value in found.items():
        print(f"{name:<34} {value}")
    same = found["records that differ"] == found["requests that differ"] == found["repeated, undisturbed"] == 0
    bounded = found["asked again for each kill"] <= found["in flight at most"]
    raise SystemExit(0 if same and bounded and len(whole.records) == options.problems else 1)


if __name__ == "__main__":
    main()
