"""A compiled pipeline's prompts in one file that needs Python 3.11 and an OpenAI-compatible server, and nothing else.

    python pipeline.py "What is 17 * 23?" --api-base http://127.0.0.1:8000/v1 --model NAME
    python pipeline.py "What is 17 * 23?" --api-base … --model … --prompt executor.code     # one prompt alone
    python pipeline.py "What is 17 * 23?" --show executor.code                              # no server: the messages

It does one round of the pipeline: it follows paths in parallel, plans others where they disagree, lets the model
reconcile the attempts, and takes the answer that most of them give. `messages` gives the exact messages of a prompt,
for use in a program of your own.

Programs that the model writes are run only with --unsafe-local-exec, and then with all your rights: there is no sandbox
here. Without it every path is worked out in words.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

PROGRAM: dict[str, Any] = {}

TRIES = 4
"""Requests for one reply: a server that is busy or failing is asked again, after 1, 2 and 4 seconds."""


def messages(prompt: str, **inputs: Any) -> list[dict[str, str]]:
    """The messages of a prompt, such as ``messages("executor.reason", problem="…", approach="")``."""
    return [
        {"role": each["role"], "content": _content(each["content"], inputs)}
        for each in PROGRAM["prompts"][prompt]["messages"]
    ]


def _content(content: str | list[dict[str, Any]], inputs: dict[str, Any]) -> str:
    if isinstance(content, str):
        return content
    return "".join(part["text"] if "text" in part else _value(part, inputs) for part in content)


def _value(slot: dict[str, Any], inputs: dict[str, Any]) -> str:
    value = inputs.get(slot["slot"])
    if slot.get("optional") and (value is None or not str(value).strip()):
        return ""
    if slot["slot"] not in inputs:
        raise ValueError(f"The prompt needs another input: {slot['slot']}.")
    return f"{slot.get('before', '')}{value}"


@dataclass(frozen=True)
class Server:
    """An OpenAI-compatible server."""

    api_base: str
    model: str
    key: str | None = None
    timeout: float = 600.0

    def ask(self, prompt: str, **inputs: Any) -> dict[str, str]:
        """Ask once and read the reply's fields; a reply that breaks the format gives what it plainly contains."""
        parameters = PROGRAM["prompts"][prompt]["parameters"]
        return read(prompt, self._post({"model": self.model, "messages": messages(prompt, **inputs), **parameters}))

    def _post(self, body: dict[str, Any]) -> str:
        headers = {"Content-Type": "application/json"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        address = f"{self.api_base.rstrip('/')}/chat/completions"
        request = urllib.request.Request(address, json.dumps(body).encode(), headers)  # noqa: S310
        for attempt in range(TRIES):
            try:
                with urllib.request.urlopen(request, timeout=self.timeout) as reply:  # noqa: S310
                    text = json.load(reply)["choices"][0]["message"].get("content") or ""
                break
            except urllib.error.HTTPError as error:
                if attempt == TRIES - 1 or (error.code != 429 and error.code < 500):
                    raise
                time.sleep(2**attempt)
        return str(text).rpartition("</think>")[2].strip()


def read(prompt: str, reply: str) -> dict[str, str]:
    """The output fields that a reply holds."""
    outputs = PROGRAM["prompts"][prompt]["outputs"]
    fields = {"fields": _marked, "json": _object, "plain": _plain}[PROGRAM["adapter"]](reply, outputs)
    if not fields.get(outputs[-1]):
        fields = _plain(reply, outputs)
    if outputs[-1] == "program":
        fields["program"] = _program(fields["program"])
    return fields


def _marked(reply: str, outputs: list[str]) -> dict[str, str]:
    pieces = re.split(r"^[ \t]*\[\[ ## (\w+) ## \]\][ \t]*", reply, flags=re.MULTILINE)
    found = zip(pieces[1::2], pieces[2::2], strict=True)
    return {name: text.strip() for name, text in found if name in outputs}


def _object(reply: str, outputs: list[str]) -> dict[str, str]:
    try:
        found = json.loads(reply[reply.index("{") : reply.rindex("}") + 1], strict=False)
    except ValueError:
        return {}
    return {name: _as_text(value) for name, value in found.items() if name in outputs}


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _plain(reply: str, outputs: list[str]) -> dict[str, str]:
    text = re.sub(r"^[ \t]*\[\[ ## \w+ ## \]\][ \t]*", "", reply, flags=re.MULTILINE).strip()
    if len(outputs) == 1:
        return {outputs[0]: text}
    *_, thoughts, last = outputs
    lines = list(re.finditer(r"^[ \t*_#>]*(?:the\s+)?(?:final\s+)?answer[ \t*_]*[:=][ \t*_]*", text, re.I | re.M))
    if not lines or not text[lines[-1].end() :].strip():
        return {last: text}
    return {thoughts: text[: lines[-1].start()].strip(), last: text[lines[-1].end() :].strip()}


def _program(text: str) -> str:
    """The last block of code, or the text itself."""
    blocks: list[str] = re.findall(r"```[a-zA-Z0-9]*\n(.*?)(?:```|\Z)", text, re.DOTALL)
    return (blocks[-1] if blocks else text).strip()


@dataclass(frozen=True)
class Attempt:
    """One try at the problem."""

    answer: str | None
    reasoning: str = ""
    code: str = ""
    output: str = ""
    error: str = ""

    def exhibit(self) -> str:
        """The attempt with its evidence, as the model is shown it."""
        thoughts = f"Reasoning:\n{_shorten(self.reasoning.strip())}" if self.reasoning.strip() else ""
        ran = f"It printed: {_shorten(self.output)}" if self.output else ""
        parts = [
            f"Program:\n{self.code}" if self.code else thoughts,
            f"When run: {_shorten(self.error)}" if self.error else ran,
            f"Answer: {self.answer}" if self.answer is not None else "",
        ]
        return "\n".join(part for part in parts if part)


def _shorten(text: str, limit: int = 2000) -> str:
    """Cut the middle out of a long text."""
    head = limit // 3
    left_out = len(text) - limit
    if left_out <= 0:
        return text
    return f"{text[:head]}\n[… {left_out} characters left out …]\n{text[head - limit :]}"


def solve(server: Server, problem: str, *, run_programs: bool = False) -> tuple[str | None, list[Attempt]]:
    """Solve a problem: the answer, and all attempts at it."""
    settings = PROGRAM["settings"]
    problem, quorum = problem.strip(), settings["quorum"]
    default = _default_paths(run_programs)
    straight = default[:quorum] if settings["straight"] or not settings["plan"] else []
    with ThreadPoolExecutor(max_workers=settings["max_paths"]) as pool:

        def follow(some: list[tuple[str, str]]) -> list[Attempt]:
            return list(pool.map(lambda path: _follow(server, problem, *path), some))

        attempts = follow(straight)
        if not _agreed(attempts, quorum):
            others = _others(server, problem, default, len(straight), run_programs)
            first = max(0, quorum - len(straight)) or len(others)
            attempts += follow(others[:first])
            if not _agreed(attempts, quorum):
                attempts += follow(others[first:])
    if settings["reflect"] and not _agreed(attempts, quorum):
        shown = "\n\n".join(f"Attempt {n}\n{each.exhibit()}" for n, each in enumerate(attempts, start=1))
        fields = server.ask("reflector.reconcile", problem=problem, attempts=shown)
        attempts.append(Attempt(_answer(fields["answer"]), reasoning=fields.get("inconsistencies", "")))
    return _choose(server, problem, attempts), attempts


def _default_paths(run_programs: bool) -> list[tuple[str, str]]:
    """Mode and approach of each default path; without programs, and for problems in parts, in words."""
    settings = PROGRAM["settings"]
    modes = ("reason", "code") if run_programs else ("reason",)
    paths = [(mode, "") for mode in settings["paths"] if mode in modes] or [("reason", "")] * len(settings["paths"])
    return paths[: settings["max_paths"]]


def _others(
    server: Server, problem: str, default: list[tuple[str, str]], followed: int, run_programs: bool
) -> list[tuple[str, str]]:
    """The paths after those that were followed: the model's plan, or the default ones."""
    settings = PROGRAM["settings"]
    order, wanted = default[followed:], settings["max_paths"] - followed
    if not settings["plan"] or wanted < 1:
        return order
    plan = server.ask("planner.propose", problem=problem, number_of_paths=wanted)
    modes = ("reason", "code") if run_programs else ("reason",)
    chosen = list(dict.fromkeys(path for path in _planned(plan["paths"]) if path[0] in modes))[:wanted]
    return [*chosen, *(order[len(chosen) :] or order)[: max(0, settings["quorum"] - followed - len(chosen))]] or order


def _planned(text: str) -> list[tuple[str, str]]:
    try:
        found = json.loads(text)
        return [(path["mode"], _directions(path)) for path in found]
    except (ValueError, TypeError, KeyError):
        lines = re.finditer(r"^\W*(?:path\s*)?\d*\W*\b(reason|code)\b\W*(.*)$", text, re.IGNORECASE | re.MULTILINE)
        return [(line[1].lower(), line[2].strip(" \t*:-")) for line in lines]


def _directions(path: dict[str, Any]) -> str:
    actions = [step["action"] if isinstance(step, dict) else step for step in path.get("steps") or ()]
    steps = [f"{n}. {action}" for n, action in enumerate(actions, start=1)]
    return "\n".join(part for part in (path["approach"].strip(), *steps) if part)


def _follow(server: Server, problem: str, mode: str, approach: str) -> Attempt:
    if mode == "reason":
        fields = server.ask("executor.reason", problem=problem, approach=approach)
        return Attempt(_answer(fields["answer"]), reasoning=fields.get("reasoning", ""))
    attempt = _run(server.ask("executor.code", problem=problem, approach=approach)["program"])
    for _ in range(PROGRAM["settings"]["max_refinements"]):
        if not attempt.error:
            break
        repaired = server.ask("executor.repair", problem=problem, failed_program=attempt.code, feedback=attempt.error)[
            "program"
        ]
        if repaired == attempt.code:
            break
        attempt = _run(repaired)
    return attempt


def _run(program: str) -> Attempt:
    limit = PROGRAM["settings"]["exec_timeout"]
    command = [sys.executable, "-I", "-"]
    try:
        done = subprocess.run(command, input=program, capture_output=True, text=True, timeout=limit, check=False)  # noqa: S603
    except subprocess.TimeoutExpired:
        return Attempt(None, code=program, error=f"It did not end within {limit:g} seconds.")
    output = done.stdout.strip()
    if done.returncode:
        return Attempt(None, code=program, output=output, error="\n".join(done.stderr.strip().splitlines()[-5:]))
    if not output:
        return Attempt(None, code=program, error="The program ran and printed nothing. It must print the answer.")
    return Attempt(_answer(output.splitlines()[-1]), code=program, output=output)


def _answer(text: str) -> str | None:
    r"""The answer itself: what \boxed{} holds, or the text without ornaments."""
    boxed = re.findall(r"\\boxed\{([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}", text)
    return (boxed[-1] if boxed else text).lstrip("*$ \n").rstrip("*$. \n") or None


def _key(answer: str) -> str:
    """Equal for answers that are the same but for their writing."""
    plain = re.sub(r"[\s$,]", "", answer.lower())
    try:
        return repr(float(plain))
    except ValueError:
        return plain


def _tally(attempts: list[Attempt]) -> Counter[str]:
    return Counter(_key(each.answer) for each in attempts if each.answer is not None)


def _agreed(attempts: list[Attempt], quorum: int) -> bool:
    return quorum > 0 and any(votes >= quorum for votes in _tally(attempts).values())


def _choose(server: Server, problem: str, attempts: list[Attempt]) -> str | None:
    """The most frequent answer; those that are tied are compared in pairs, each pair in both orders."""
    tally = _tally(attempts)
    votes = max(tally.values(), default=0)
    first_with = {_key(each.answer): each for each in reversed(attempts) if each.answer is not None}
    tied = [first_with[key] for key in tally if tally[key] == votes]
    if not tied:
        return None
    while len(tied) > 1:
        half = len(tied) // 2
        pairs = zip(tied[:half], reversed(tied[-half:]), strict=True)
        through = [_better(server, problem, one, other) for one, other in pairs]
        tied = [each for each in tied if each in through or each in tied[half : len(tied) - half]]
    return tied[0].answer


def _better(server: Server, problem: str, one: Attempt, other: Attempt) -> Attempt:
    """The better of two attempts; the first where the model says otherwise when it sees them the other way round."""
    straight = server.ask("verifier.compare", problem=problem, first=one.exhibit(), second=other.exhibit())
    swapped = server.ask("verifier.compare", problem=problem, first=other.exhibit(), second=one.exhibit())
    return other if "second" in straight["better"].lower() and "first" in swapped["better"].lower() else one


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=f"Solve a problem with prompts compiled for {PROGRAM['model']}.")
    parser.add_argument("problem")
    parser.add_argument("--api-base", default="http://127.0.0.1:8000/v1", help="address of the server")
    parser.add_argument("--model", default=PROGRAM["model"], help="the model's name there (default: %(default)s)")
    parser.add_argument("--api-key-env", help="name of the environment variable that holds the key")
    parser.add_argument("--prompt", choices=list(PROGRAM["prompts"]), help="ask with this prompt alone")
    parser.add_argument("--show", choices=list(PROGRAM["prompts"]), help="print this prompt's messages and end")
    parser.add_argument("--input", action="append", default=[], metavar="NAME=TEXT", help="another input of the prompt")
    parser.add_argument("--unsafe-local-exec", action="store_true", help="run the model's programs, with your rights")
    given = parser.parse_args()
    if given.api_key_env and not os.environ.get(given.api_key_env):
        parser.error(f"--api-key-env {given.api_key_env}: the variable is not set")
    try:
        result = _result(given)
    except OSError as error:
        sys.exit(f"{given.api_base}: {error}")
    except ValueError as error:
        sys.exit(str(error))
    sys.stdout.write(json.dumps(result, ensure_ascii=False, indent=2) + "\n")


def _result(given: argparse.Namespace) -> Any:
    inputs = {"problem": given.problem, "approach": "", **dict(item.split("=", 1) for item in given.input)}
    server = Server(given.api_base, given.model, os.environ.get(given.api_key_env or ""))
    if given.show:
        return messages(given.show, **inputs)
    if given.prompt:
        return server.ask(given.prompt, **inputs)
    answer, attempts = solve(server, given.problem, run_programs=given.unsafe_local_exec)
    return {"answer": answer, "attempts": [vars(each) for each in attempts]}


if __name__ == "__main__":
    main()
