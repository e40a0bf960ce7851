"""Calibration: what the counts speak for."""

from __future__ import annotations

import pytest

from coda.optimize.calibrate import Cell, Count, cells, chance_better, choose, probed, settings_for
from coda.program.settings import Settings

BASE = Settings(paths=("reason", "code"), max_paths=4)


def grid(**counts: tuple[int, int]) -> dict[Cell, Count]:
    """Right and readable of 6 for each style and mode, as ``plain_code=(5, 6)``."""
    found: dict[Cell, Count] = {}
    for cell, (right, readable) in counts.items():
        style, mode = cell.split("_")
        found[style, mode] = Count(right, 6, readable)  # type: ignore[index]
    return found


def test_the_style_with_the_best_mode_wins() -> None:
    chosen = choose(BASE, grid(fields_reason=(3, 6), fields_code=(3, 6), plain_reason=(0, 6), plain_code=(5, 6)))
    assert chosen.adapter == "plain"


def test_a_hopeless_mode_is_not_tried() -> None:
    chosen = choose(BASE, grid(plain_reason=(0, 6), plain_code=(6, 6)))
    assert chosen.paths == ("code",) * 4


def test_a_mode_that_may_be_as_good_is_tried_second() -> None:
    chosen = choose(BASE, grid(plain_reason=(3, 6), plain_code=(4, 6)))
    assert chosen.paths == ("code", "reason", "code", "reason")


def test_modes_that_never_worked_keep_the_profile_s_order() -> None:
    base = BASE.model_copy(update={"paths": ("code", "reason")})
    assert choose(base, grid(plain_reason=(0, 6), plain_code=(0, 6))).paths == ("code", "reason", "code", "reason")


def test_counts_add_up() -> None:
    assert Count(1, 4, 3) + Count(5, 12, 12) == Count(6, 16, 15)


def test_among_equal_styles_the_more_readable_one_wins_and_then_the_profile_s() -> None:
    assert choose(BASE, grid(fields_code=(4, 3), json_code=(4, 6))).adapter == "json"
    assert choose(BASE, grid(fields_code=(4, 6), json_code=(4, 6))).adapter == "fields"


def test_the_profile_s_style_is_measured_first() -> None:
    assert cells(Settings(adapter="plain"), ["code"]) == [("plain", "code"), ("fields", "code"), ("json", "code")]


def test_a_cell_is_one_path_and_nothing_else() -> None:
    settings = settings_for(BASE, ("plain", "code"))
    assert (settings.adapter, settings.paths, settings.quorum) == ("plain", ("code",), 1)
    assert not settings.plan
    assert not settings.reflect
    assert settings.max_refinements == 0


def test_chance_of_being_better_agrees_with_the_closed_form() -> None:
    # Under uniform priors, one success in one trial beats none in one with probability 5/6.
    assert chance_better(Count(1, 1), Count(0, 1)) == pytest.approx(5 / 6, abs=0.01)
    assert chance_better(Count(3, 6), Count(3, 6)) == pytest.approx(0.5, abs=0.01)


def test_only_modes_that_the_default_paths_follow_are_probed() -> None:
    base = Settings(paths=("code", "reason"))
    assert probed(base, ("reason", "code", "decompose")) == ("reason", "code")
    assert probed(base, ("decompose",)) == ("decompose",)
