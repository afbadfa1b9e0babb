"""Numbers, dates, times and ids in texts, compared by what they mean."""

import re
from collections.abc import Iterable
from decimal import Decimal
from typing import TypeAlias

_Meanings: TypeAlias = set[Decimal | str | tuple[int, ...]]

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = rf"(?:{'|'.join(_MONTHS)})(?:uary|ruary|ch|il|e|y|ust|t|t?ember|ober)?\b"
_FIGURE = re.compile(
    rf"""(?ix)(?<!\d)(?P<year>\d{{4}})[-/](?P<month>\d\d?)[-/](?P<day>\d\d?)(?!\d)
    |\b(?:(?P<name>{_MONTH})\.?\s+(?P<behind>\d\d?)(?:st|nd|rd|th)?|(?P<before>\d\d?)(?:st|nd|rd|th|\.)?\s+(?:of\s+)?(?P<last>{_MONTH}))
        (?!\d)(?:\.?,?\s+(?P<late>\d{{4}}))?
    |(?:(?<=\d)T|(?<![\d:]))(?P<hour>\d\d?)(?::(?P<minute>\d\d)(?::\d\d)?(?:\s*(?P<half>[ap])\.?m\b)?|\s*(?P<alone>[ap])\.?m\b)
    |(?P<id>(?<![\w-])(?!\d[\d.,]*-?(?-i:[a-z]+|[A-Z]{{1,3}})(?![\w-]))(?=[a-z_-]*\d)(?=[\d-]*[a-z_])[a-z0-9_-]+)
    |(?P<number>\d+(?:[.,'\u2019\u00a0\u202f]\d+)*)"""
)


def missing_figures(text: str, sources: Iterable[str]) -> list[str]:
    """Return the numbers, dates, times and ids of a text that stand in none of the sources, as they are written.

    ``1,000`` equals ``1000``, ``May 5`` is in ``2026-05-05``, ``5 pm`` in ``17:00``. The number of a list's item is none.
    """
    shown = {meaning for source in sources for figure in _FIGURE.finditer(source) for meaning in _meanings(figure)[1]}
    figures = _FIGURE.finditer(re.sub(r"\A\W*\d{1,3}[.)]\s", "", text))
    return [figure[0] for figure in figures if shown.isdisjoint(_meanings(figure)[0])]


def _meanings(figure: re.Match[str]) -> tuple[_Meanings, _Meanings]:
    """Return what a figure may mean in a claim, and what it shows in a source."""
    if identity := figure["id"]:
        return {identity.casefold()}, {identity.casefold(), *map(Decimal, re.findall(r"\d{4,}", identity))}
    if figure["hour"]:
        hour, minute, half = int(figure["hour"]), int(figure["minute"] or 0), figure["half"] or figure["alone"]
        afternoon = (hour % 12 + 12, minute)
        time = (hour, minute) if not half else afternoon if half in "pP" else (hour % 12, minute)
        return {time} if half else {time, afternoon}, {time}
    if figure["number"]:  # 1,000 is 1000, 1,5 is 1.5, 1.000 may be either, and 1,2,3 is a list
        groups, marks = re.split(r"\D", figure["number"]), re.findall(r"\D", figure["number"])
        each: _Meanings = {Decimal(group) for group in groups}
        meanings: _Meanings = set()
        if len({*marks}) < 2 and all(len(group) == len("000") for group in groups[1:]):
            meanings.add(Decimal("".join(groups)))
        if marks and marks[-1] in ".," and marks.count(marks[-1]) == 1 and not (meanings and marks == [","]):
            meanings.add(Decimal(f"{''.join(groups[:-1])}.{groups[-1]}"))
        return meanings or each, meanings | each if "," in marks or not meanings else meanings
    name = figure["name"] or figure["last"]
    month = _MONTHS.index(name[:3].lower()) + 1 if name else int(figure["month"])
    year, day = int(figure["year"] or figure["late"] or 0), int(figure["day"] or figure["behind"] or figure["before"])
    return {(year, month, day)}, {(year, month, day), (0, month, day), *map(Decimal, (year, month, day))}
