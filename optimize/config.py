"""How hard to compile: the one model that the command line, Python and the artefact's manifest share."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

OptimizerName = Literal[
    "auto",
    "labeled",
    "bootstrap",
    "random-search",
    "copro",
    "mipro",
    "simba",
    "gepa",
    "infer-rules",
    "better-together",
]

STAGES = ("planner", "executor", "reflector", "verifier")


class CompileConfig(BaseModel):
    """How hard to try, and by which optimizer."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    optimizer: OptimizerName = "auto"
    """Who looks for better prompts; see docs/compile.md."""
    only: str | None = None
    """Stages whose prompts may change, such as planner,reflector; all by default."""
    rollouts: int = Field(default=400, ge=1)
    """Problems that an optimizer may run through the pipeline before its finalists are measured."""
    finalists: int = Field(default=3, ge=1)
    """Its best candidates, which are measured on the whole validation split."""
    probe: int = Field(default=6, ge=1)
    """Training problems for each cell of the calibration grid."""
    candidates: int = Field(default=6, ge=1)
    """Candidates in each round: sets of demos, proposed instructions, programs of a step."""
    zero_shot: bool = True
    """Measure the calibrated program without any demos too."""
    demos: int = Field(default=8, ge=1, le=64)
    """Demos for each predictor."""
    train: int = Field(default=60, ge=1)
    """Training problems that demos and instructions are made from."""
    validation: int | None = Field(default=None, ge=1)
    """Validation problems on which candidates are measured; all by default."""
    test: int | None = Field(default=None, ge=1)
    """Test problems for the proof; all by default."""
    concurrency: int = Field(default=16, ge=1)
    """Problems worked on at once."""
    token_cost: float = Field(default=0.0, ge=0.0)
    """What a thousand tokens take off a problem's score while an optimizer searches."""
    stage_feedback: bool = True
    """Tell each predictor what it did for a problem; without it, only how the final answer was graded."""
    prompt_tokens: int = Field(default=1500, ge=50)
    """Tokens that an instruction may have."""
    demo_tokens: int = Field(default=6000, ge=0)
    """Tokens that all demos of a predictor may have together."""
    teacher_model: str | None = None
    """Another model that solves the problems from which demos are made."""
    teacher_api_base: str | None = None
    """Its address, where it is not that of --api-base."""
    teacher_api_key_env: str | None = None
    """The variable that holds its key, where it is not --api-key-env."""
    reflection_model: str | None = None
    """Another model that writes instructions."""
    reflection_api_base: str | None = None
    """Its address, where it is not that of --api-base."""
    reflection_api_key_env: str | None = None
    """The variable that holds its key, where it is not --api-key-env."""
    require_gain: bool = False
    """Publish nothing unless the gain over the baseline on the test split is proven (interval above 0, p < 0.05)."""
    seed: int = Field(default=0, ge=0)
    """Seed of everything that compiling draws at random."""

    @field_validator("only")
    @classmethod
    def _stages_exist(cls, only: str | None) -> str | None:
        unknown = [name for name in _names(only) if name not in STAGES]
        if unknown:
            raise ValueError(f"there is no stage {', '.join(unknown)}; the stages are {', '.join(STAGES)}")
        return only

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages that ``only`` names; empty where all prompts may change."""
        return _names(self.only)


def _names(only: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in (only or "").split(",") if name.strip())
