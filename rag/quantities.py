"""Quantities of a text with their units, spelled out or in digits, so that "half a billion" and "500 million" are one value."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rag.markup import words
from rag.text import numbers

_SMALL = {
    w: n
    for n, w in enumerate(
        words("one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty"),
        start=1,
    )
} | {"thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90, "hundred": 100}
_TENS = "twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
_ORDINALS = {w: n for n, w in enumerate(words("first second third fourth fifth sixth seventh eighth ninth tenth"), start=1)}
_PARTS = {"half": 2, "third": 3, "quarter": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9, "tenth": 10}
_COUNT = rf"(?:(?:{_TENS})-(?:one|two|three|four|five|six|seven|eight|nine)|{'|'.join(_SMALL)}|dozen)"
#: What a word after a number says of its kind; a unit of time carries the seconds it has, so that a day is 24 hours.
_UNITS: tuple[tuple[str, str], ...] = (
    ("%", r"\s*(?:%|percent\b|per cent\b|percentage)"),
    ("x", r"\s*(?:x\b|×|-?\s?fold\b|\s*times\b)"),
    ("s", r"[\s-]*(?:s\b|secs?\b|seconds?\b)"),
    ("ms", r"[\s-]*(?:ms\b|milliseconds?\b)"),
    ("min", r"[\s-]*(?:min\b|minutes?\b)"),
    ("h", r"[\s-]*(?:h\b|hrs?\b|hours?\b)"),
    ("d", r"[\s-]*(?:days?\b)"),
    ("w", r"[\s-]*(?:weeks?\b)"),
    ("a", r"[\s-]*(?:years?\b)"),
    ("km", r"[\s-]*(?:km\b|kilomet\w+)"),
    ("m", r"[\s-]*(?:m\b|met(?:er|re)s?\b)"),
    ("bit", r"[\s-]*(?:bits?\b)"),
    ("byte", r"[\s-]*(?:[kKMGT]i?B\b|bytes?\b|gigabytes?\b|megabytes?\b)"),
    ("order", r"\s*orders? of magnitude"),
    ("dim", r"[\s-]*(?:D\b|dimension\w*)"),
)
_TIME = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0, "a": 31536000.0}
_DIGITS = re.compile(r"\b10\^[-−]?\d{1,2}|(?<![\w.^/-])(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[-+]?\d+)?(?:(?:k|K|M|B|bn|T)(?![A-Za-z]))?(?![\w]*[A-Za-z]\d)")
_SPELT = re.compile(rf"\b(?P<n>{_COUNT})(?P<fold>fold)?\b", re.IGNORECASE)
_OUT_OF = re.compile(rf"\b(?P<a>{_COUNT}|\d+)(?: out of| in)(?: every)? (?P<b>{_COUNT}|\d+)\b", re.IGNORECASE)
_PART = re.compile(
    rf"\b(?:(?P<n>{_COUNT}|an?)[\s-])?(?P<part>half|thirds?|quarters?|fifths?|tenths?)(?=\s+(?:of|an?|the|its|as)\b|\s*(?:[,.;]|$))", re.IGNORECASE
)
_HALF_A = re.compile(r"\b(?:half an? (?P<unit>hour|day|minute|million|billion)|half of\b)", re.IGNORECASE)
_A_UNIT = re.compile(r"\b(?:a|an|one) (?:single |mere )?(?P<unit>day|hour|minute|second|week|year|million|billion|thousand|hundred)\b", re.IGNORECASE)
_MULTIPLE = re.compile(r"\b(?P<w>twice|double[sd]?|doubling|triple[sd]?|tripling|quadruple[sd]?|halv\w+|halfs?)\b", re.IGNORECASE)
_MULTIPLES = {"twice": 2.0, "doub": 2.0, "trip": 3.0, "quad": 4.0}
_ORDINAL = re.compile(rf"\b(?P<o>{'|'.join(_ORDINALS)})(?=[\s-](?:order|degree|moments?|and|generation))", re.IGNORECASE)
_SCALE = re.compile(r"[\s-]*(?P<s>hundred|thousand|million|billion|trillion)\b", re.IGNORECASE)
_SCALES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number as it was written, its value, its kind of unit ("" for none), and where it starts; `spelt` if in letters."""

    written: str
    value: float
    unit: str
    start: int
    spelt: bool = False


def quantities(told: str) -> list[Quantity]:
    """The quantities of a plain text in order of place.

    A unit of time becomes seconds ("a day" and "24 hours" are one value of one unit), one of length metres, a fraction of a whole a percentage.
    "One" alone is no quantity, nor are digits of a name.
    """
    found: dict[int, Quantity] = {}
    taken = [False] * (len(told) + 1)

    def keep(start: int, end: int, value: float, unit: str, *, spelt: bool) -> None:
        if any(taken[start:end]):
            return
        taken[start:end] = [True] * (end - start)
        if unit in _TIME:
            value, unit = value * _TIME[unit], "s"
        if unit == "km":
            value, unit = value * 1000, "m"
        found[start] = Quantity(told[start:end].strip(), value, unit, start, spelt)

    for m in _OUT_OF.finditer(told):
        b = _count(m["b"])
        if b > 1:
            keep(m.start(), m.end(), 100 * _count(m["a"]) / b, "%", spelt=True)
    for m in _HALF_A.finditer(told):
        unit = (m["unit"] or "").lower()
        if unit in _SCALES:
            keep(m.start(), m.end(), _SCALES[unit] / 2, "", spelt=True)
        elif unit:
            keep(m.start(), m.end(), 0.5, unit_of(unit), spelt=True)
        else:
            keep(m.start(), m.end(), 50.0, "%", spelt=True)
    for m in _A_UNIT.finditer(told):
        unit = m["unit"].lower()
        keep(m.start(), m.end(), _SCALES.get(unit, 1.0), "" if unit in _SCALES else unit_of(unit), spelt=True)
    for m in _PART.finditer(told):
        count = 1 if (m["n"] or "a").lower() in ("a", "an") else _count(m["n"])
        keep(m.start(), m.end(), 100.0 * count / _PARTS[m["part"].lower().removesuffix("s") if m["part"].lower() != "half" else "half"], "%", spelt=True)
    for m in _DIGITS.finditer(told):
        value = numbers(m[0])
        if value:
            scaled, end = _scaled(_float(value[0]), told, m.end())
            keep(m.start(), end, scaled, _unit(told, end), spelt=False)
    for m in _SPELT.finditer(told):
        if m["n"].lower() == "one" and not m["fold"] and not re.match(r"-(?:dimension|step|shot|bit|fold)", told[m.end() :]):
            continue
        scaled, end = _scaled(float(_count(m["n"])), told, m.end())
        keep(m.start(), end, scaled, "x" if m["fold"] else _unit(told, end), spelt=True)
    for m in _ORDINAL.finditer(told):
        keep(m.start(), m.end(), float(_ORDINALS[m["o"].lower()]), "ordinal", spelt=True)
    for m in _MULTIPLE.finditer(told):
        value_ = _MULTIPLES.get(m["w"].lower()[:4], _MULTIPLES.get(m["w"].lower()))
        if value_:
            keep(m.start(), m.end(), value_, "x", spelt=True)
    return [found[start] for start in sorted(found)]


def unit_of(name: str) -> str:
    """The unit that a word names, "" for none."""
    return next((unit for unit, form in _UNITS if re.match(form, " " + name)), "")


def same_value(one: Quantity, other: Quantity) -> bool:
    """Whether two quantities have one value, up to how it was rounded when written; a share may be a percentage."""
    if abs(one.value - other.value) <= 1e-6 * max(abs(one.value), abs(other.value), 1e-9):
        return True
    shares = (one.unit == "%") != (other.unit == "%")
    return shares and min(one.value, other.value) < 1 and abs(max(one.value, other.value) - 100 * min(one.value, other.value)) < 1e-6


def same_unit(one: Quantity, other: Quantity) -> bool:
    """Whether two quantities may be of one kind; a bare number may be anything but a time or a length."""
    if one.unit == other.unit:
        return True
    strict = {"s", "m", "bit", "byte", "order", "dim", "ordinal"}
    return not ((one.unit in strict) or (other.unit in strict))


def _unit(told: str, end: int) -> str:
    rest = told[end : end + 24]
    return next((unit for unit, form in _UNITS if re.match(form, rest)), "")


def _count(word: str) -> int:
    word = word.lower()
    if word.isdigit():
        return int(word)
    if word == "dozen":
        return 12
    return sum(_SMALL[p] for p in word.split("-"))


def _float(written: str) -> float:
    value, _, scale = written.partition(" ")
    return float(value) * _SCALES.get(scale, 1.0)


def _scaled(value: float, told: str, end: int) -> tuple[float, int]:
    m = _SCALE.match(told, end)
    return (value * _SCALES[m["s"].lower()], m.end()) if m else (value, end)
