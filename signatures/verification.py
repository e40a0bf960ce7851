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


class Judge(dspy.Signature):
    """Check this attempt at the problem step by step, and decide whether its answer is right."""

    problem: str = dspy.InputField()
    attempt: str = dspy.InputField(desc="the attempt with its evidence")
    reasoning: str = dspy.OutputField(desc="the check")
    verdict: Literal["right", "wrong"] = dspy.OutputField(desc="whether the answer is right")


class WriteInputs(dspy.Signature):
    """Several programs were written for this task, and some are wrong. Write calls that tell them apart.

    Use ordinary arguments and corner cases that the task allows. Do not say what the results should be.
    """

    problem: str = dspy.InputField()
    function: str = dspy.InputField(desc="the function to call")
    calls: str = dspy.OutputField(desc='one Python call a line, such as "f([1, 2], 3)"')
