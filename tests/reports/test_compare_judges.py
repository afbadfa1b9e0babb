"""Judges held against each other, on a terminal and on the page."""

import io
from collections.abc import Callable

import pytest

from judgekit import Run, Score
from judgekit.analysis.compare_judges import JudgeComparison, compare_judges
from judgekit.analysis.labels import HumanLabel
from judgekit.reports.compare_judges import show_judges
from judgekit.reports.html import html_report
from judgekit.score import JudgeCall
from judgekit.terminal import console
from tests.browsers import PHONE, keeps_nobody_out

EVIL = "\x1b[2J</script><script>alert(1)</script>\u202e"


@pytest.fixture
def two(run_of) -> Callable[..., tuple[Run, JudgeComparison]]:
    """Two judges of three samples: of one they say different things, and of one the second says nothing."""

    def made(name: str = "b", reason: str = "as message 2 shows") -> tuple[Run, JudgeComparison]:
        first = [Score.scored("one", value, label=f"{value:g}", reason=reason) for value in (1, 0, 1)]
        second = [*(Score.scored("two", value, reason=reason) for value in (1, 1)), Score.failed("two", "broken")]
        scored = run_of(first, second)
        labels = [HumanLabel(sample=f"s{number}", scorer="one", value=value) for number, value in enumerate((1, 0, 0))]
        return scored, compare_judges(scored, {"a": "one", name: "two"}, labels)

    return made


def shown(comparison: JudgeComparison, show: int, width: int = 100) -> str:
    made = console()
    made.file, made.width = io.StringIO(), width
    show_judges(comparison, show, made)
    return made.file.getvalue()


@pytest.mark.parametrize("width", [80, 140])
def test_numbers_flips_and_what_is_not_compared_are_shown_whatever_the_width(two, width):
    _, comparison = two()
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
    _, comparison = two()
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


def test_what_stands_in_reasons_and_names_steers_no_terminal_and_no_page(two):
    scored, comparison = two(EVIL, EVIL)
    text = shown(comparison, 3)
    assert not {"\x1b", "\u202e"} & set(text)
    page = "".join(html_report(scored, judges=comparison))
    assert "<script>alert" not in page


@pytest.mark.browser
def test_the_page_shows_the_same_and_leads_to_the_samples(two, tmp_path, opened):
    expect = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser").expect
    scored, comparison = two(EVIL, EVIL)
    path = tmp_path / "page.html"
    path.write_text("".join(html_report(scored, judges=comparison)), encoding="utf-8")
    with opened(path, viewport=PHONE) as page:
        expect(page.get_by_role("heading", name="Each pair")).to_be_visible()
        assert page.locator(".told").last.inner_text().count("not compared: 1") == 1
        flip = page.locator(".disagreement")
        assert flip.count() == 1
        assert "people 0.00" in " ".join(flip.inner_text().split())
        keeps_nobody_out(page)
        flip.locator("a").click()
        expect(page.locator(".sample-head")).to_be_visible()
