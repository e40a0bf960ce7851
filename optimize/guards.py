"""What no compiled prompt may hold: training text in an instruction, too long a one, a demo of a test problem."""

from __future__ import annotations

import re
from collections.abc import Sequence

import dspy

from coda.data.benchmarks import Benchmark
from coda.optimize.config import CompileConfig
from coda.optimize.optimizers.student import Prompts, with_prompts
from coda.program.conductor import Coda
from coda.program.presentation import statement

NGRAM = 8
"""So many words in a row, taken from a training problem, are no coincidence."""

SHORT = 4
"""A problem of fewer words than `NGRAM`, and at least so many, must not stand in an instruction as a whole."""

TOKENS_PER_WORD = 1.4
"""A cautious guess for English, to compare an instruction with a limit in tokens (characters / 4 for other scripts)."""


class Guards:
    """Checks the prompts of candidates.

    Args:
        train: The training split: no instruction may copy from it.
        held_out: The other splits: no demo may show one of their problems.
        config: How long instructions and demos may be.
    """

    def __init__(self, train: Benchmark, held_out: Sequence[Benchmark], config: CompileConfig) -> None:
        texts = [statement(each.problem) for each in train.examples]
        self._grams = {gram for text in texts for gram in ngrams(text)}
        self._short = {normal(text) for text in texts if SHORT <= len(_words(text)) < NGRAM}
        self._held_out = {normal(statement(each.problem)) for part in held_out for each in part.examples}
        self._held_out |= {normal(each.problem.text) for part in held_out for each in part.examples}
        self._instruction_tokens, self._demo_tokens = config.prompt_tokens, config.demo_tokens

    def mend(self, program: Coda, original: Coda) -> tuple[Coda, list[str]]:
        """Put the original instruction in the place of one that breaks a rule, and leave such demos out.

        Args:
            program: The candidate; it is not changed.
            original: The program that it was made from; what its instructions hold, they may go on to hold.

        Returns:
            The candidate as it may be measured, and what was changed and why.
        """
        originals = {name: predictor.signature.instructions for name, predictor in original.named_predictors()}
        instructions: dict[str, str] = {}
        demos: dict[str, list[dspy.Example]] = {}
        caveats: list[str] = []
        for name, predictor in program.named_predictors():
            fault = self.fault(predictor.signature.instructions, originals[name])
            if fault:
                instructions[name] = originals[name]
                caveats.append(f"The instruction of {name} {fault}; its original was put back.")
            kept = [demo for demo in predictor.demos if not self.leaks(demo)]
            if len(kept) < len(predictor.demos):
                demos[name] = kept
                caveats.append(
                    f"{len(predictor.demos) - len(kept)} demos of {name} show a validation or test problem; "
                    "they were left out."
                )
            if len(fitting := self.fitting(kept)) < len(kept):
                demos[name] = fitting
                caveats.append(
                    f"Only {len(fitting)} of {len(kept)} demos of {name} fit into {self._demo_tokens} tokens "
                    "(--demo-tokens)."
                )
        return (with_prompts(program, Prompts(instructions, demos)) if caveats else program), caveats

    def fault(self, instruction: str, original: str = "") -> str:
        """What is wrong with an instruction; empty where nothing is."""
        if instruction == original:
            return ""
        if (length := tokens(instruction)) > self._instruction_tokens:
            return f"has about {length} tokens, and --prompt-tokens allows {self._instruction_tokens}"
        copied = [" ".join(gram) for gram in (ngrams(instruction) & self._grams) - ngrams(original)]
        text, before = f" {normal(instruction)} ", f" {normal(original)} "
        copied += [short for short in self._short if f" {short} " in text and f" {short} " not in before]
        return f'copies from a training problem ("{min(copied)}")' if copied else ""

    def fitting(self, demos: Sequence[dspy.Example]) -> list[dspy.Example]:
        """The demos that fit into the limit together: the first ones, without those that are too long for it."""
        kept, left = [], self._demo_tokens
        for demo in demos:
            length = sum(tokens(str(value)) for value in demo.values())
            if length <= left:
                kept.append(demo)
                left -= length
        return kept

    def leaks(self, demo: dspy.Example) -> bool:
        """Whether a demo shows a problem that the result will be measured on."""
        return normal(str(demo.get("problem") or "")) in self._held_out


def ngrams(text: str, n: int = NGRAM) -> set[tuple[str, ...]]:
    """All runs of ``n`` words of a text."""
    words = _words(text)
    return {tuple(words[i : i + n]) for i in range(len(words) - n + 1)}


def tokens(text: str) -> int:
    """About how many tokens a text has."""
    return int(max(len(text.split()) * TOKENS_PER_WORD, len(text) / 4))


def normal(text: str) -> str:
    """A problem's words alone: case, spacing and punctuation aside."""
    return " ".join(_words(text))


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())
