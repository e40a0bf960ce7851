"""Answers: reading them from a text, and telling when two are the same.

The one place for both: grading, majority voting and the salvage of malformed replies all use it, so that an answer
that counts in the vote is the answer that is graded.
"""

from coda.program.answers.equivalence import aequivalent, equivalent, group, normal
from coda.program.answers.extraction import extract
from coda.program.answers.programs import extract_program, parsed

__all__ = ["aequivalent", "equivalent", "extract", "extract_program", "group", "normal", "parsed"]
