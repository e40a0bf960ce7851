"""Plain numbers: integers, decimals, fractions, percentages; and the tidying that makes answers comparable.

What can be decided here needs no symbolic mathematics and no worker process. The verdicts agree with math-verify's; a
test compares the two.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

LONGEST = 2000
"""Characters; longer answers are left as they are, and compared as texts."""

_LONGEST_NUMBER = 300
_ROUNDING = Fraction(11, 10_000_000)
"""Decimals are the same when they agree to six places; numbers further apart than this never do."""

_UNICODE = str.maketrans(
    {
        "−": "-", "–": "-", "—": "-", "×": r"\times ", "·": r"\cdot ", "÷": "/", "∕": "/", "⁄": "/",
        "π": r"\pi ", "∞": r"\infty ", "√": r"\sqrt ", "°": r"^\circ ", "²": "^2", "³": "^3", "½": r"\frac{1}{2}",
        "¼": r"\frac{1}{4}", "¾": r"\frac{3}{4}", "≤": r"\le ", "≥": r"\ge ", "≠": r"\ne ", "±": r"\pm ", "∪": r"\cup ",
        "％": "%", "\u00a0": " ", "\u2009": " ", "\u202f": " ",
    }
)  # fmt: skip
_WRAPPERS = (("$$", "$$"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]"), ("**", "**"), ("`", "`"), ('"', '"'))
_SEPARATOR = re.compile(r"(?<=\d)(?:\{,\}|\\[,;!: ]|,\\!)(?=\d{3}(?!\d))")
_CURRENCY = re.compile(r"(?:\\\$|[$€£¥₹])\s*(?=[-+]?[\d.])")
_MEMBER = re.compile(r"^[A-Za-z]\s*(?:\\in\b|∈)\s*")
_SCIENTIFIC = re.compile(r"[-+]?\d+(?:\.\d+)?[eE][-+]?\d{1,2}")
_TEXT = re.compile(r"\\(?:text|mathrm|textbf|mathbf|textit|mbox)\s*\{([^{}]*)\}")
_PERCENT = re.compile(r"\s*(?:\\?%|\\text\s*\{\s*%\s*\}|(?:per ?cent|percentage|pct)\b)\s*$", re.IGNORECASE)
_FRACTION_CALL = re.compile(r"\b(?:Fraction|Rational)\(\s*(-?\d+)\s*,\s*(\d+)\s*\)")
_MIXED = re.compile(r"([-+]?\d+)(?: |-| and )(\d+) ?/ ?(\d+)")
_UNITS = re.compile(
    r"([-+]?[\d.,]*\d|[-+]?\\frac\{\d+\}\{\d+\}|[-+]?\d+/\d+)\s*-?([A-Za-z][A-Za-z./-]*(?:\s+[A-Za-z][A-Za-z./-]*){0,5})\s*"
)
_NOT_UNITS = re.compile(r"\b(?:and|or|mod|choose|dozen|half|pi|sqrt|[a-z]+illion|thousand|hundred|i|e|x|y|n)\b")
_SCALE = {"hundred": 10**2, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_SCALED = re.compile(r"([-+]?\d[\d,]*(?:\.\d+)?) ?(hundred|thousand|million|billion|trillion)\b(?:\s+[A-Za-z]+){0,3}")
_DECIMAL = re.compile(r"([-+]?)(\d{1,3}(?:,\d{3})+|\d+)?(\.\d*)?")
_RATIO = re.compile(r"([-+]?)(\d+) ?/ ?([-+]?)(\d+)")
_FRAC = re.compile(r"([-+]?)\\[dtc]?frac ?(?:\{ ?([-+]?\d+) ?\}|(\d)) ?(?:\{ ?([-+]?\d+) ?\}|(\d))")


@dataclass(frozen=True)
class Number:
    """A plain number.

    Attributes:
        value: It; for a percentage, the number before the sign.
        exact: Whether it was written without a decimal point.
        percent: Whether a percent sign followed.
    """

    value: Fraction
    exact: bool
    percent: bool = False

    def __str__(self) -> str:
        """The number as one would write it."""
        value = self.value
        text = str(value) if self.exact or value.denominator == 1 else _decimal(value)
        return f"{text}%" if self.percent else text


def tidy(answer: str) -> str:
    r"""Remove from an answer what does not change its meaning: wrappers, currency, units, separators of thousands.

    Typographic and Python notation becomes LaTeX: ``−`` a minus sign, ``**`` a power, ``Fraction(1, 2)`` a fraction.
    """
    if len(answer) > LONGEST:
        return answer.strip()
    text = unwrap(answer.translate(_UNICODE))
    text = _MEMBER.sub("", _CURRENCY.sub("", _SEPARATOR.sub("", text)))
    whole = _TEXT.fullmatch(text)
    if whole:
        text = whole[1].strip()
    text = _FRACTION_CALL.sub(r"\1/\2", text).replace("**", "^")
    text = re.sub(r"(?<![A-Za-z\\])(pi|infinity|sqrt)\b", _as_command, text)
    text = re.sub(r"^([-+])\s+(?=[\d.])", r"\1", text)
    text = re.sub(r"(?<![A-Za-z\\])oo\b", r"\\infty", text)
    text = _scientific(text)
    text, signs = _PERCENT.subn("", text)
    mixed = _MIXED.fullmatch(text)
    if mixed:
        text = rf"{mixed[1]}\frac{{{mixed[2]}}}{{{mixed[3]}}}"
    text = _without_units(_scaled(text))
    return f"{text}%" if signs else text


def unwrap(text: str) -> str:
    """Strip white space, punctuation at the end, and marks of mathematics or emphasis around the whole."""
    while len(text) <= LONGEST:
        before = text
        text = text.strip().strip("\u200b")
        if text.endswith((".", ",", ";", ":")) and not text.endswith("..") and not text.endswith(r"\,"):
            text = text[:-1]
        for left, right in _WRAPPERS:
            if len(text) > len(left) + len(right) and text.startswith(left) and text.endswith(right):
                inner = text[len(left) : -len(right)]
                if left not in inner and right not in inner:
                    text = inner
                    break
        if text == before:
            break
    return text.strip()


def number(tidied: str) -> Number | None:
    """Read a tidied answer as a plain number; ``None`` where it is none."""
    if len(tidied) > _LONGEST_NUMBER:
        return None
    percent = tidied.endswith("%")
    text = tidied.rstrip("%\\ ").strip() if percent else tidied
    if found := _DECIMAL.fullmatch(text):
        sign, whole, decimals = found.groups()
        if whole is None and (decimals is None or len(decimals) < 2):
            return None
        digits = f"{sign}{(whole or '0').replace(',', '')}{decimals or ''}"
        return Number(Fraction(digits.rstrip(".")), exact=not decimals or len(decimals) < 2, percent=percent)
    if found := _RATIO.fullmatch(text):
        sign, above, below_sign, below = found.groups()
        return _quotient(sign, above, below_sign + below, percent)
    if found := _FRAC.fullmatch(text):
        sign, above, digit, below, below_digit = found.groups()
        return _quotient(sign, above or digit, below or below_digit, percent)
    return None


def same_number(a: Number, b: Number) -> bool | None:
    """Whether two plain numbers are the same answer; ``None`` where only math-verify can tell.

    A percentage equals its number with the sign left out, since both are common ways to write the answer.
    """
    if a.percent != b.percent:
        whole = a.exact and b.exact and a.value.denominator == 1
        return True if whole and a.value == b.value >= 0 else None
    if a.value == b.value:
        return True
    if a.exact and b.exact:
        return False
    if max(abs(a.value), abs(b.value)) >= 10**9 or a.percent:
        return None
    return False if abs(a.value - b.value) > _ROUNDING else None


def _quotient(sign: str, above: str, below: str, percent: bool) -> Number | None:
    if int(below) == 0:
        return None
    value = Fraction(int(above), int(below))
    return Number(-value if sign == "-" else value, exact=True, percent=percent)


def _decimal(value: Fraction) -> str:
    """A decimal whose denominator is a power of ten, written out."""
    places = 0
    while value.denominator != 1 and places < _LONGEST_NUMBER:
        value, places = value * 10, places + 1
    digits = str(abs(value.numerator)).rjust(places + 1, "0")
    return f"{'-' if value < 0 else ''}{digits[:-places]}.{digits[-places:]}"


def _as_command(found: re.Match[str]) -> str:
    return {"pi": r"\pi", "infinity": r"\infty", "sqrt": "sqrt"}[found[1]]


def _scientific(text: str) -> str:
    """``1.5e-05``, as programs print it, as ``0.000015``."""
    return format(Decimal(text), "f") if _SCIENTIFIC.fullmatch(text) else text


def _scaled(text: str) -> str:
    """``1.5 million`` as ``1500000``."""
    found = _SCALED.fullmatch(text)
    if not found:
        return text
    value = Fraction(found[1].replace(",", "")) * _SCALE[found[2]]
    return str(value) if value.denominator == 1 else text


def _without_units(text: str) -> str:
    """``12 apples`` as ``12``; words that belong to the number stay."""
    found = _UNITS.fullmatch(text)
    if not found or _NOT_UNITS.search(found[2].lower()):
        return text
    if len(found[2].strip()) == 1 and not text[len(found[1])].isspace():
        return text  # 2x is a product
    return found[1]
