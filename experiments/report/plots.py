"""The report's figures: effects, accuracy against tokens, where problems were lost, what refinement was worth."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from coda.experiments.report.contents import STEPS, Contents, Effect, tokens_each
from coda.experiments.report.runs import Run
from coda.experiments.report.svg import (
    Scale,
    bar,
    dot,
    figure,
    line,
    linear,
    log_ticks,
    logarithmic,
    path,
    text,
    ticks,
)
from coda.optimize.gap import GapReport, RefinementRound
from coda.optimize.stats import Estimate

WIDE, SMALL = 560.0, 320.0
LOG_FROM = 4.0
"""Tokens are drawn on a logarithmic axis when the most is so many times the least."""


def forest(effects: Sequence[Effect]) -> Markup:
    """Paired differences with their 95 % intervals, one line for each run."""
    left, right, row, top = 170.0, WIDE - 20, 30.0, 14.0
    ends = [end for each in effects for end in (_gain(each).low, _gain(each).high)]
    low, high = min(0.0, *ends), max(0.0, *ends)
    margin = (high - low) * 0.06 or 0.01
    scale = linear(low - margin, high + margin, left, right)
    bottom = top + row * len(effects)
    parts = [_tick(scale(at), top, bottom, f"{at * 100:+.0f}" if at else "0") for at in ticks(low, high, 6)]
    parts.append(line(scale(0.0), top, scale(0.0), bottom, "zero"))
    for number, each in enumerate(effects):
        parts += _effect(each, scale, top + row * (number + 0.5))
    parts.append(text((left + right) / 2, bottom + 36, "difference in accuracy, points", anchor="middle", kind="axis"))
    return figure(WIDE, bottom + 44, "Differences in accuracy, paired by problem; the table has the numbers", parts)


def _effect(effect: Effect, scale: Scale, y: float) -> list[Markup]:
    gain, paired = _gain(effect), effect.comparison.paired
    sure = "up" if gain.low > 0 else "down" if gain.high < 0 else "unsure"
    said = f"{gain.mean * 100:+.1f} ({gain.low * 100:+.1f} to {gain.high * 100:+.1f})"
    words = f"{effect.run.name} against {effect.against.name}: {said} points, p = {paired.p:.2g}"
    return [
        text(0, y + 4, effect.run.name, most=22),
        line(scale(gain.low), y, scale(gain.high), y, f"whisker {sure}"),
        dot(scale(gain.mean), y, 5, f"mark {sure}", words),
    ]


def _gain(effect: Effect) -> Estimate:
    return effect.comparison.paired.difference


def pareto(contents: Contents) -> Markup:
    """Accuracy against tokens for each result; runs that no other beats in both are joined."""
    left, right, top, bottom = 48.0, WIDE - 20, 16.0, 300.0
    spent = [max(1.0, tokens_each(run)) for run in contents.runs]
    low, high = min(spent) * 0.85, max(spent) * 1.15
    wide = max(spent) / min(spent) > LOG_FROM
    across = (logarithmic if wide else linear)(low, high, left, right)
    ceiling = min(1.0, max(run.summary.ci95[1] for run in contents.runs) * 1.08)
    up = linear(0.0, ceiling, bottom, top)
    parts = [
        _tick(across(at), top, bottom, f"{at:,.0f}") for at in (log_ticks(low, high) if wide else ticks(low, high, 7))
    ]
    parts += [_rung(left, right, up(at), f"{at * 100:.0f} %") for at in ticks(0.0, ceiling, 6)]
    parts += [path(places, "front") for places in _fronts(contents, across, up)]
    for number, (run, tokens) in enumerate(zip(contents.runs, spent, strict=True), start=1):
        x, y = across(tokens), up(run.summary.accuracy)
        said = f"{run.name}: {run.summary.accuracy:.1%} with {tokens:,.0f} tokens for each result"
        parts += [
            line(x, up(run.summary.ci95[0]), x, up(run.summary.ci95[1]), "whisker unsure"),
            dot(x, y, 10, "mark front" if run.name in contents.front else "mark unsure", said),
            text(x, y + 4, str(number), anchor="middle", kind="number"),
        ]
    parts.append(text((left + right) / 2, bottom + 36, "tokens for each result", anchor="middle", kind="axis"))
    return figure(WIDE, bottom + 44, "Accuracy against tokens for each result; the table has the numbers", parts)


def _fronts(contents: Contents, across: Scale, up: Scale) -> list[list[tuple[float, float]]]:
    """For each benchmark and split, the places of the runs that no other beats, from few tokens to many."""
    fronts: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for run in sorted(contents.runs, key=tokens_each):
        if run.name in contents.front:
            place = across(max(1.0, tokens_each(run))), up(run.summary.accuracy)
            fronts.setdefault(run.data, []).append(place)
    return list(fronts.values())


def waterfall(run: Run, gap: GapReport) -> Markup:
    """How far a single attempt is from the final answer, and at which step right answers were lost."""
    shares = [float(getattr(gap, name)) for name in STEPS]
    left, top, bottom = 6.0, 20.0, 170.0
    step = (SMALL - 2 * left) / len(STEPS)
    up = linear(0.0, max(0.05, *shares), bottom, top)
    parts = [line(left, bottom, SMALL - left, bottom, "zero")]
    before = 0.0
    for place, (name, share) in enumerate(zip(STEPS, shares, strict=True)):
        x, whole = left + place * step + 5, name in ("single", "final")
        low, high = (0.0, share) if whole else (min(before, share), max(before, share))
        kind = "whole" if whole else "up" if share > before else "down" if share < before else "same"
        change = "" if whole else f", {(share - before) * 100:+.1f} points"
        parts.append(bar(x, up(high), step - 10, up(low) - up(high), f"bar {kind}", f"{name}: {share:.1%}{change}"))
        parts.append(text(x + step / 2 - 5, up(high) - 5, f"{share * 100:.1f}", anchor="middle", kind="value"))
        parts.append(text(x + step / 2 - 5, bottom + 16, name, anchor="middle", kind="axis"))
        if place + 1 < len(STEPS):
            parts.append(line(x + step - 10, up(share), x + step, up(share), "joint"))
        before = share
    return figure(SMALL, bottom + 24, f"Where right answers of {run.name} are found and lost, in per cent", parts)


def refinement(run: Run, rounds: Sequence[RefinementRound]) -> Markup:
    """Attempts that each round of correction fixed (above the line) and broke (below it)."""
    left, top, height = 6.0, 18.0, 130.0
    step = min(110.0, (SMALL - 2 * left) / len(rounds))
    most_up = max(each.fixed for each in rounds)
    most_down = max(each.broken for each in rounds)
    unit = (height - 36) / max(1, most_up + most_down)
    zero = top + most_up * unit
    parts = []
    for place, each in enumerate(rounds):
        x = left + place * step + 6
        middle, width = x + step / 2 - 6, step - 12
        said = f"round {each.round}: {each.tried} tried, {each.fixed} fixed, {each.broken} broken"
        if each.fixed:
            parts.append(bar(x, zero - each.fixed * unit, width, each.fixed * unit, "bar up", said))
        if each.broken:
            parts.append(bar(x, zero, width, each.broken * unit, "bar down", said))
        parts.append(text(middle, zero - each.fixed * unit - 5, f"+{each.fixed}", anchor="middle", kind="value"))
        parts.append(text(middle, zero + each.broken * unit + 14, f"−{each.broken}", anchor="middle", kind="value"))
        label = f"round {each.round}, of {each.tried}" if step > 90 else f"{each.round}: {each.tried}"
        parts.append(text(middle, top + height + 8, label, anchor="middle", kind="axis"))
    parts.append(line(left, zero, left + step * len(rounds), zero, "zero"))
    return figure(SMALL, top + height + 16, f"Attempts fixed and broken by each round of {run.name}", parts)


def _tick(x: float, top: float, bottom: float, label: str) -> Markup:
    return line(x, top, x, bottom, "rule") + text(x, bottom + 18, label, anchor="middle", kind="axis")


def _rung(left: float, right: float, y: float, label: str) -> Markup:
    return line(left, y, right, y, "rule") + text(left - 6, y + 4, label, anchor="end", kind="axis")
