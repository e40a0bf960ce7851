"""What the executor asks, one signature for each way to work."""

import dspy


class Reason(dspy.Signature):
    """Solve the problem step by step, following the approach if one is given, and state the final answer."""

    problem: str = dspy.InputField()
    approach: str = dspy.InputField(desc="how to go about it; may be empty")
    reasoning: str = dspy.OutputField(desc="the steps that lead to the answer")
    answer: str = dspy.OutputField(desc="the final answer alone; for a multiple-choice problem, the letter")


class WriteProgram(dspy.Signature):
    """Write a complete Python program that computes the answer to the problem and prints it, and nothing else.

    For a multiple-choice problem, print the letter of the right option.
    """

    problem: str = dspy.InputField()
    approach: str = dspy.InputField(desc="how to go about it; may be empty")
    program: str = dspy.OutputField(desc="Python source code")


class WriteFunction(dspy.Signature):
    """Write the Python code that the task asks for: complete, with its imports, and without calls that try it out."""

    problem: str = dspy.InputField()
    approach: str = dspy.InputField(desc="how to go about it; may be empty")
    program: str = dspy.OutputField(desc="Python source code")


class RepairProgram(dspy.Signature):
    """A program written for this problem failed. Find the mistake from the feedback and write the corrected program."""

    problem: str = dspy.InputField()
    failed_program: str = dspy.InputField()
    feedback: str = dspy.InputField(desc="what happened when it ran")
    program: str = dspy.OutputField(desc="the corrected Python source code, complete")
