"""The benchmarks on the hub, each a short declaration.

Revisions are pinned: a benchmark that changes under the same name makes figures incomparable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from coda.data import livecodebench, schemas
from coda.data.examples import Split
from coda.data.hub import Source
from coda.data.schemas import Reader
from coda.data.splits import SHARES
from coda.program.types import Task

Shares = Mapping[Split, float]

ALL_TEST: Shares = MappingProxyType({"test": 1.0})
LEARN: Shares = MappingProxyType({"train": 0.8, "validation": 0.2})


@dataclass(frozen=True)
class Declaration:
    """A benchmark on the hub.

    Attributes:
        about: What it is, in a few words.
        task: The kind of answer, which also says who grades it.
        source: Where it is.
        parts: Which of its splits are read, and how each is dealt out to ours, by content.
        columns: What its rows must have.
        read: How a row becomes a problem.
        licence: Under which terms it can be used.
        gated: Whether its terms must be accepted first.
        shares: How a local file in its schema is dealt out.
    """

    about: str
    task: Task
    source: Source
    parts: Mapping[str, Shares]
    columns: tuple[str, ...]
    read: Reader
    licence: str
    gated: bool = False
    shares: Shares = field(default_factory=lambda: SHARES)


CATALOG: dict[str, Declaration] = {
    "gsm8k": Declaration(
        about="grade-school word problems with whole-number answers",
        task="math",
        source=Source("openai/gsm8k", "main", "740312add88f781978c0658806c59bc2815b9866"),
        parts={"train": LEARN, "test": ALL_TEST},
        columns=("question", "answer"),
        read=schemas.gsm8k,
        licence="MIT",
    ),
    "math500": Declaration(
        about="500 competition problems out of MATH",
        task="math",
        source=Source("HuggingFaceH4/MATH-500", None, "6e4ed1a2a79af7d8630a6b768ec859cb5af4d3be"),
        parts={"test": SHARES},
        columns=("problem", "answer", "unique_id"),
        read=schemas.mathematics,
        licence="MIT",
    ),
    "aime24": Declaration(
        about="the 30 problems of AIME 2024, answers from 0 to 999",
        task="math",
        source=Source("HuggingFaceH4/aime_2024", None, "2fe88a2f1091d5048c0f36abc874fb997b3dd99a"),
        parts={"train": ALL_TEST},
        columns=("problem", "answer"),
        read=schemas.mathematics,
        licence="problems by the Mathematical Association of America",
        shares=ALL_TEST,
    ),
    "aime25": Declaration(
        about="the 30 problems of AIME 2025, answers from 0 to 999",
        task="math",
        source=Source("yentinglin/aime_2025", None, "6f71d77b0b89b9dabe07ab466c51df33f514df7f"),
        parts={"train": ALL_TEST},
        columns=("problem", "answer"),
        read=schemas.mathematics,
        licence="problems by the Mathematical Association of America",
        shares=ALL_TEST,
    ),
    "gpqa-diamond": Declaration(
        about="198 graduate-level questions in physics, chemistry and biology, four options",
        task="choice",
        source=Source("Idavidrein/gpqa", "gpqa_diamond", "633f5ee89ab8ad4522a9f850766b73f62147ffdd"),
        parts={"train": SHARES},
        columns=("Question", "Correct Answer", "Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3"),
        read=schemas.gpqa,
        licence="CC BY 4.0; do not publish its questions",
        gated=True,
    ),
    "mmlu": Declaration(
        about="57 subjects, four options",
        task="choice",
        source=Source("cais/mmlu", "all", "c30699e8356da336a370243923dbaf21066bb9fe"),
        parts={"dev": {"train": 1.0}, "validation": {"validation": 1.0}, "test": ALL_TEST},
        columns=("question", "choices", "answer"),
        read=schemas.mmlu,
        licence="MIT",
    ),
    "mmlu-pro": Declaration(
        about="12,000 harder questions in 14 subjects, up to ten options",
        task="choice",
        source=Source("TIGER-Lab/MMLU-Pro", None, "b189ec765aa7ed75c8acfea42df31fdae71f97be"),
        parts={"validation": {"train": 1.0}, "test": SHARES},
        columns=("question_id", "question", "options", "answer"),
        read=schemas.mmlu_pro,
        licence="MIT",
    ),
    "arc-challenge": Declaration(
        about="grade-school science questions that simple methods get wrong",
        task="choice",
        source=Source("allenai/ai2_arc", "ARC-Challenge", "210d026faf9955653af8916fad021475a3f00453"),
        parts={"train": {"train": 1.0}, "validation": {"validation": 1.0}, "test": ALL_TEST},
        columns=("question", "choices", "answerKey"),
        read=schemas.arc,
        licence="CC BY-SA 4.0",
    ),
    "humaneval": Declaration(
        about="164 Python functions with unit tests",
        task="code",
        source=Source("openai/openai_humaneval", None, "7dce6050a7d6d172f3cc5c32aa97f52fa1a2e544"),
        parts={"test": SHARES},
        columns=("task_id", "prompt", "entry_point", "canonical_solution", "test"),
        read=schemas.humaneval,
        licence="MIT",
    ),
    "mbpp": Declaration(
        about="427 short Python tasks, the hand-verified part; one visible test, the others hidden",
        task="code",
        source=Source("google-research-datasets/mbpp", "sanitized", "4bb6404fdc6cacfda99d4ac4205087b89d32030c"),
        parts={"train": {"train": 1.0}, "validation": {"validation": 1.0}, "test": ALL_TEST},
        columns=("task_id", "prompt", "code", "test_list"),
        read=schemas.mbpp,
        licence="CC BY 4.0",
    ),
    "livecodebench": Declaration(
        about="contest problems with their dates; livecodebench:VERSION:FIRST-DAY:LAST-DAY chooses a window",
        task="code",
        source=Source("lighteval/code_generation_lite", None, "89e5fc5c2a8e748f50e95bc7235fab2372d49bfa"),
        parts={"test": SHARES},
        columns=(
            "question_id", "question_content", "contest_date", "starter_code", "public_test_cases",
            "private_test_cases", "metadata",
        ),
        read=livecodebench.read,
        licence="CC; problems belong to their contests",
    ),
}  # fmt: skip
