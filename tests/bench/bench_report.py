"""A report on 2,000 problems: how large the page is, and how soon it can be used in Chromium."""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from browser import chromium, page_of, reason_to_skip
from synthetic_run import Synthetic, make_run

from coda.experiments.report import gather, write_report


def main() -> None:
    """Make the runs, the report, and open it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=2000)
    parser.add_argument("--length", type=int, default=120, help="words of reasoning for each attempt")
    parser.add_argument("--keep", type=Path, help="folder that the report is kept in")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        for seed, (name, skill) in enumerate({"single": 0.4, "Coda": 0.6, "Compiled": 0.7}.items()):
            made = Synthetic(name, arguments.problems, skill, length=arguments.length)
            make_run(home / "runs" / f"{seed}-{name}", made)
        raw = sum(file.stat().st_size for file in home.rglob("results.jsonl"))
        began = time.perf_counter()
        written = write_report(gather([home / "runs"]), arguments.keep or home / "report")
        print(f"3 runs of {arguments.problems} problems, {raw / 1e6:.1f} MB of results")
        print(f"report written in {time.perf_counter() - began:.1f} s")
        print(f"page: {written.page.stat().st_size / 1e6:.2f} MB (limit 15)")
        why = reason_to_skip()
        if why:
            print(f"not opened: {why}")
            return
        _open(written.page)


def _open(page: Path) -> None:
    with chromium() as browser, page_of(browser, page) as opened:
        ready = opened.evaluate("document.documentElement.dataset.ready")
        print(f"interactive after {ready} ms (limit 2000)")
        actions = {
            "filter": "document.getElementById('wrong').click()",
            "search": "{const s = document.getElementById('search'); s.value = 'triangle';"
            " s.dispatchEvent(new Event('input'))}",
        }
        for name, action in actions.items():
            took = opened.evaluate(f"() => {{ const t = performance.now(); {action}; return performance.now() - t }}")
            print(f"{name}: {took:.0f} ms")
        began = time.perf_counter()
        opened.locator("#rows button").last.click()
        opened.wait_for_selector("#dialog[open] #story section")
        print(f"a story opens in {(time.perf_counter() - began) * 1000:.0f} ms, the browser's remote control included")


if __name__ == "__main__":
    main()
