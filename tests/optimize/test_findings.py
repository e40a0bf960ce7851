"""What one record says: which stage had the right answer, and where a wrong problem was lost. The right answer is 4."""

from __future__ import annotations

from coda.optimize.findings import finding
from coda.optimize.records import Fault
from coda.program.types import Usage


def test_single_is_the_first_path_whatever_was_chosen(attempt, record) -> None:
    found = finding(record(attempt("5"), attempt("4"), chosen=1))
    assert (found.single, found.oracle, found.verified, found.final) == (False, True, True, True)


def test_a_right_answer_is_not_lost(attempt, record) -> None:
    assert finding(record(attempt("4"))).loss is None


def test_majority_groups_answers_by_class_and_leaves_reflection_out(attempt, record) -> None:
    found = finding(record(attempt("5"), attempt("4"), attempt("4"), attempt("5", origin="reflection"), chosen=1))
    assert found.majority


def test_majority_of_equally_frequent_answers_is_the_first(attempt, record) -> None:
    assert finding(record(attempt("4"), attempt("5"))).majority
    assert not finding(record(attempt("5"), attempt("4"))).majority


def test_majority_without_any_answer_is_wrong(attempt, record) -> None:
    assert not finding(record(attempt(None, finish="truncated"), chosen=None)).majority


def test_all_answers_wrong_is_lost_for_want_of_a_candidate(attempt, record) -> None:
    assert finding(record(attempt("5"), attempt("6"))).loss == "no-candidate"


def test_a_right_attempt_that_was_not_chosen_is_lost_by_the_verifier(attempt, record) -> None:
    found = finding(record(attempt("5"), attempt("4")))
    assert found.loss == "verifier"
    assert found.contested


def test_a_majority_overruled_by_reflection_is_lost_by_reflection(attempt, record) -> None:
    attempts = attempt("4"), attempt("4"), attempt("5"), attempt("5", origin="reflection")
    found = finding(record(*attempts, chosen=2))
    assert found.loss == "reflection"
    assert found.reflection is False


def test_reflection_that_only_agreed_with_a_wrong_majority_is_not_to_blame(attempt, record) -> None:
    attempts = attempt("5"), attempt("5"), attempt("4"), attempt("5", origin="reflection")
    assert finding(record(*attempts, chosen=0)).loss == "verifier"


def test_attempts_without_an_answer_are_lost_by_what_happened_to_most(attempt, record, execution) -> None:
    cut = attempt(None, finish="truncated")
    crashed = attempt(None, mode="code", execution=execution("error"))
    assert finding(record(cut, chosen=None)).loss == "truncated"
    assert finding(record(crashed, chosen=None)).loss == "tool"
    assert finding(record(cut, crashed, crashed, chosen=None)).loss == "tool"
    assert finding(record(attempt(None, finish="unparsable"), chosen=None)).loss == "unparsable"
    assert finding(record(attempt(None, finish="failed", error="HTTP 500"), chosen=None)).loss == "engine"
    assert finding(record(attempt(None, finish="budget"), chosen=None)).loss == "budget"


def test_a_truncated_answer_is_no_sound_answer(attempt, record) -> None:
    assert finding(record(attempt("40", finish="truncated"))).loss == "truncated"


def test_a_program_that_could_not_be_run_is_lost_by_the_tool(attempt, record, execution) -> None:
    assert finding(record(attempt("def f(): ...", mode="code", execution=execution("no-sandbox")))).loss == "tool"


def test_a_search_ended_by_a_limit_is_lost_by_the_budget(attempt, record) -> None:
    assert finding(record(attempt("5"), attempt(None, finish="budget"))).loss == "budget"


def test_errors_without_attempts_name_who_failed(record) -> None:
    def loss(kind: str) -> str | None:
        return finding(record(chosen=None, error=Fault(kind=kind, message="…"))).loss

    assert loss("timeout") == "engine"
    assert loss("budget") == "budget"
    assert loss("grading") == "internal"
    assert loss("unexpected") == "internal"


def test_every_correction_is_compared_with_the_attempt_before_it(attempt, record, execution) -> None:
    crashed = attempt(None, mode="code", execution=execution("error"))
    wrong = attempt("5", mode="code", refinements=1, execution=execution("wrong"))
    right = attempt("4", mode="code", refinements=2, earlier=(crashed, wrong), execution=execution("ok"))
    found = finding(record(right))
    assert found.rounds == ((1, False, False), (2, False, True))
    assert found.programs == ("error", "wrong", "ok")
    assert found.modes == (("code", True, True),)


def test_tokens_are_prompt_and_completion_together(attempt, record) -> None:
    assert finding(record(attempt("4"), usage=Usage(prompt_tokens=3, completion_tokens=4))).tokens == 7
