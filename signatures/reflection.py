"""What the reflector asks."""

import dspy


class Reconcile(dspy.Signature):
    """Compare the attempts, name where they disagree and why, then solve the problem once more, correctly.

    Trust what was computed or tested over what was only claimed. All of the attempts may be wrong.
    """

    problem: str = dspy.InputField()
    attempts: str = dspy.InputField(desc="earlier attempts with their evidence")
    inconsistencies: str = dspy.OutputField(desc="where the attempts contradict each other, and which one errs")
    answer: str = dspy.OutputField(desc="the final answer alone; for a multiple-choice problem, the letter")


class ReconcilePrograms(dspy.Signature):
    """Compare the programs, name where they differ and what their tests show, then write one correct program."""

    problem: str = dspy.InputField()
    attempts: str = dspy.InputField(desc="earlier programs with the results of their tests")
    inconsistencies: str = dspy.OutputField(desc="where the programs differ, and which one errs")
    program: str = dspy.OutputField(desc="Python source code, complete")


class Restate(dspy.Signature):
    """The attempts at this problem do not convince. State the problem anew, so that it can be solved.

    Say what is given, what exactly is asked, and what the attempts misread or overlooked. Keep every number and
    condition of the problem. Do not solve it.
    """

    problem: str = dspy.InputField()
    attempts: str = dspy.InputField(desc="earlier attempts with their evidence")
    restatement: str = dspy.OutputField(desc="the problem in other words")
