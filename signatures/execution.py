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


class Decompose(dspy.Signature):
    """Split the problem into a few smaller parts whose answers together give the answer to the problem.

    Order them so that each part can use the answers of those before it. Do not solve them.
    """

    problem: str = dspy.InputField()
    approach: str = dspy.InputField(desc="how to go about it; may be empty")
    parts: list[str] = dspy.OutputField(desc="One part a line, each a question that can be answered on its own.")


class SolvePart(dspy.Signature):
    """Solve one part of a larger problem. Use what the parts before it have given, and solve this part only."""

    problem: str = dspy.InputField(desc="the whole problem")
    solved: str = dspy.InputField(desc="the parts before this one with their answers; may be empty")
    part: str = dspy.InputField(desc="the part to solve now")
    reasoning: str = dspy.OutputField(desc="the steps that lead to the answer")
    answer: str = dspy.OutputField(desc="the answer to this part")


class Combine(dspy.Signature):
    """Put the answers of the parts together into the answer to the whole problem. Check that they fit each other."""

    problem: str = dspy.InputField()
    solved: str = dspy.InputField(desc="the parts with their answers")
    reasoning: str = dspy.OutputField(desc="the steps that lead to the answer")
    answer: str = dspy.OutputField(desc="the final answer alone; for a multiple-choice problem, the letter")
