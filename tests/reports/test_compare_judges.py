"""Judges held against each other, on a terminal."""

import io
from collections.abc import Callable

import pytest

from judgekit import Score
from judgekit.analysis.compare_judges import JudgeComparison, compare_judges
from judgekit.analysis.labels import HumanLabel
from judgekit.reports.compare_judges import show_judges
from judgekit.score import JudgeCall
from judgekit.terminal import console

EVIL = "\x1b[2J\u202e"


@pytest.fixture
def two(run_of) -> Callable[..., JudgeComparison]:
    """Two judges of three samples: of one they say different things, and of one the second says nothing."""

    def made(name: str = "b", reason: str = "as message 2 shows") -> JudgeComparison:
        first = [Score.scored("one", value, label=f"{value:g}", reason=reason) for value in (1, 0, 1)]
        second = [*(Score.scored("two", value, reason=reason) for value in (1, 1)), Score.failed("two", "broken")]
        scored = run_of(first, second)
        labels = [HumanLabel(sample=f"s{number}", scorer="one", value=value) for number, value in enumerate((1, 0, 0))]
        return compare_judges(scored, {"a": "one", name: "two"}, labels)

    return made


def shown(comparison: JudgeComparison, show: int, width: int = 100) -> str:
    made = console()
    made.file, made.width = io.StringIO(), width
    show_judges(comparison, show, made)
    return made.file.getvalue()


@pytest.mark.parametrize("width", [80, 140])
def test_numbers_flips_and_what_is_not_compared_are_shown_whatever_the_width(two, width):
    comparison = two()
    text = shown(comparison, 3, width)
    assert max(map(len, text.splitlines())) <= width
    words = " ".join(text.split())
    for line in (
        "a and b: not compared: 1 (1 failed by b)",
        "of n=2, a is right on 100.0%, b on 50.0%; a alone is right on 1, b alone on 0; p 1 by exact McNemar: no evidence",
        "b: 1 label left out: failed by the judge",
        "a and b, 1 flipped:",
        "a: 0.00: as message 2 shows b: 1.00: as message 2 shows people: 0.00",
    ):
        assert line in words
    assert "flipped" not in shown(comparison, 0, width)


def test_who_was_compared_in_the_place_of_a_judge_is_told(two):
    comparison = two()
    side = comparison.judges[0].model_copy(update={"fell_back": 2, "answered": {"openai/c": 2, "openai/a": 1}})
    text = shown(comparison.model_copy(update={"judges": (side, comparison.judges[1])}), 0, 140)
    assert "a: its fallback judged 2 samples, and is compared on these; answers by openai/c 2, openai/a 1" in text


def test_the_models_that_answered_for_each_judge_are_told(run_of):
    def by(scorer: str, judge: str, *models: str | None) -> list[Score]:
        return [Score.scored(scorer, 1, calls=[JudgeCall(judge=judge, prompt="p", model=model)]) for model in models]

    scored = run_of(by("one", "openai/a", "a-1", "a-2", "a-1"), by("two", "openai/b", None, None, None))
    comparison = compare_judges(scored, {"openai/a": "one", "local": "two"})
    lines = shown(comparison, 0, 140).splitlines()
    assert "openai/a answered as a-1 (2), a-2 (1)" in lines
    assert "local: openai/b reports no model, so a change behind this name would go unnoticed" in lines


def test_what_stands_in_reasons_and_names_steers_no_terminal(two):
    text = shown(two(EVIL, EVIL), 3)
    assert not {"\x1b", "\u202e"} & set(text)
