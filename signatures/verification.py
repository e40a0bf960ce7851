"""What the verifier asks."""

from typing import Literal

import dspy


class Compare(dspy.Signature):
    """Two attempts at the problem give different answers. Check both, and decide which one is right."""

    problem: str = dspy.InputField()
    first: str = dspy.InputField(desc="the first attempt with its evidence")
    second: str = dspy.InputField(desc="the second attempt with its evidence")
    reasoning: str = dspy.OutputField(desc="the check of both attempts")
    better: Literal["first", "second"] = dspy.OutputField(desc="the attempt that is right")
