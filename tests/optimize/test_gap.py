"""The gap report counts over problems; its parts add up."""

from __future__ import annotations

import pytest

from coda.optimize.findings import finding
from coda.optimize.gap import GapReport, gap_report
from coda.program.types import Plan, Usage


@pytest.fixture
def report(attempt, record) -> GapReport:
    """Four problems: agreed and right; agreed and wrong; saved by reflection; right attempt not chosen."""
    right, wrong = attempt("4"), attempt("5", mode="code")
    saved = attempt("4", origin="reflection")
    records = [
        record(right, right, id="a", early_exit=True, usage=Usage(completion_tokens=10)),
        record(wrong, wrong, id="b", early_exit=True, usage=Usage(completion_tokens=20)),
        record(wrong, attempt("6"), saved, chosen=2, id="c", usage=Usage(completion_tokens=30)),
        record(right, wrong, chosen=1, id="d", usage=Usage(completion_tokens=40)),
    ]
    records[0] = records[0].model_copy(update={"plan": Plan(paths=(), source="engine")})
    return gap_report([finding(each) for each in records])


def test_the_waterfall(report: GapReport) -> None:
    assert report.n == 4
    assert (report.single, report.oracle, report.majority) == (0.5, 0.75, 0.5)
    assert (report.verified, report.final) == (0.5, 0.5)


def test_losses_add_up_to_all_wrong_problems(report: GapReport) -> None:
    assert report.lost == {"no-candidate": 1, "verifier": 1}
    assert sum(report.lost.values()) == round(report.n * (1 - report.final))


def test_early_exit_rate_and_precision(report: GapReport) -> None:
    assert (report.early_exit.rate, report.early_exit.precision) == (0.5, 0.5)


def test_planner_yield(report: GapReport) -> None:
    assert (report.planner.engine, report.planner.default) == (1, 3)
    assert report.planner.coverage == 0.5
    assert report.planner.distinct_answers == pytest.approx((1 + 1 + 3 + 2) / 4)


def test_executor_yield_by_mode(report: GapReport) -> None:
    reason, code = report.executor["reason"], report.executor["code"]
    assert (reason.attempts, reason.right, reason.no_answer) == (4, 3, 0)
    assert (code.attempts, code.right, code.no_answer) == (4, 0, 0)


def test_reflector_fixed_minus_broken(report: GapReport) -> None:
    assert report.reflector.model_dump() == {"ran": 1, "right": 1, "fixed": 1, "broken": 0}


def test_verifier_is_judged_where_there_was_something_to_choose(report: GapReport) -> None:
    assert report.verifier.model_dump() == {"selectable": 3, "chosen": 2, "contested": 2, "contested_chosen": 1}


def test_refinement_by_round(attempt, record) -> None:
    def corrected(*answers: str | None):
        *before, last = answers
        earlier = tuple(attempt(answer, mode="code") for answer in before)
        return record(attempt(last, mode="code", earlier=earlier, refinements=len(earlier)))

    report = gap_report(
        [finding(each) for each in (corrected(None, "4"), corrected("5", "6", "4"), corrected("4", "5"))]
    )
    assert [round_.model_dump() for round_ in report.refinement] == [
        {"round": 1, "tried": 3, "fixed": 1, "broken": 1},
        {"round": 2, "tried": 1, "fixed": 1, "broken": 0},
    ]


def test_accuracy_against_tokens_ends_at_the_final_accuracy(report: GapReport) -> None:
    assert [(point.tokens, point.solved) for point in report.effort] == [(10, 0.25), (20, 0.25), (30, 0.5), (40, 0.5)]


def test_many_problems_give_ten_points_of_effort(attempt, record) -> None:
    findings = [finding(record(attempt("4"), id=str(i), usage=Usage(completion_tokens=i))) for i in range(1, 101)]
    points = gap_report(findings).effort
    assert [point.tokens for point in points] == list(range(10, 101, 10))
    assert [point.solved for point in points] == pytest.approx([tenth / 10 for tenth in range(1, 11)])


def test_no_early_exit_has_no_precision(attempt, record) -> None:
    assert gap_report([finding(record(attempt("4")))]).early_exit.precision is None
