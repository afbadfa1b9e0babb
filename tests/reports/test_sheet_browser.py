"""Labeling in a real browser."""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from judgekit import AIMessage, HumanMessage, Run, Sample, Score, SystemMessage, ToolCall, ToolMessage, load_prompt, run
from judgekit.analysis.labels import HumanLabel, read_labels
from judgekit.analysis.sampling import draw_samples
from judgekit.judges.scripted import ScriptedJudge
from judgekit.reports.sheet import LabelSheet
from judgekit.scorers.prompted import PromptScorer
from judgekit.traces.message import MediaPart, OtherPart, ReasoningPart, TextPart
from tests.browsers import LIGHT_AND_DARK, NEEDS_BROWSER, PHONE, keeps_nobody_out, unfold
from tests.failures.conftest import analyzed, failing  # noqa: F401 - a fixture
from tests.scorers.test_turns import answering, conversation

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser")
expect = sync_api.expect

EVIL = "</script><script>alert(1)</script><!--<img src=x onerror=alert(2)>\u202e{{ 7 * 7 }}"
pytestmark = NEEDS_BROWSER


@dataclass(frozen=True)
class Kind:
    """Says 1 of every second sample; of the third a half, if it is to have many values."""

    prompt: str = "faithfulness"
    many: bool = False
    name: str = "kind"

    @property
    def prompts(self):
        return (load_prompt(self.prompt),)

    async def ascore(self, sample: Sample, /) -> Score:
        number = len(sample.id)
        return Score.scored("kind", 0.3 if self.many and number == 3 else float(number % 2))


def sample(id: str, said: str = "Done.") -> Sample:
    messages = [
        SystemMessage("You help. " * 30),
        HumanMessage((TextPart(said), MediaPart(kind="image", url=said), OtherPart({said: said}))),
        AIMessage((ReasoningPart(said), TextPart(said)), tool_calls=[ToolCall(said, {"a": said})]),
        ToolMessage('{"a": [1, 2]}', is_error=True),
        AIMessage("It is done. " * 40),
    ]
    return Sample.of(messages, id=id, reference=f"reference {said}", documents=[said])


def written(scored: Run, path: Path) -> Path:
    made = LabelSheet(scored, scored.scorers[0], draw_samples(scored, scored.scorers[0].name, 9))
    path.write_text("".join(made.page()), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def labels(tmp_path_factory) -> Path:
    """A sheet of four samples, of which the ids and texts are hostile."""
    samples = [sample("=s"), sample('two, "too"\nlong', EVIL), sample(f"d{EVIL}", EVIL), sample("four")]
    return written(run(samples, [Kind()]), tmp_path_factory.mktemp("labels") / "sheet.html")


@pytest.fixture(scope="module")
def numbers(tmp_path_factory) -> Path:
    scored = run([sample("a"), sample("bb"), sample("ccc")], [Kind("topic_adherence", many=True)])
    return written(scored, tmp_path_factory.mktemp("numbers") / "sheet.html")


def press(page, keys: str) -> None:
    for key in keys.split():
        page.keyboard.press(key)


def heading(page, number: int, of: int = 4) -> None:
    expect(page.locator("h1")).to_have_text(f"Sample {number} of {of}")


def downloaded(page, to: Path, name: str = "") -> list[HumanLabel]:
    press(page, "d")
    page.fill("#annotator", name)
    with page.expect_download() as found:
        press(page, "Enter")
    found.value.save_as(to / found.value.suggested_filename)
    return list(read_labels(to / found.value.suggested_filename))


def test_labels_are_given_by_keys_survive_a_reload_and_are_read_back(labels, opened, tmp_path):
    with opened(labels) as page:
        asked: list[str] = []
        page.on("dialog", lambda dialog: asked.append(dialog.type))
        press(page, "1 2 c")
        heading(page, 3)
        page.keyboard.type("=1+1, it said")
        press(page, "Escape k")
        heading(page, 2)
        assert page.locator(".choices [aria-pressed=true]").inner_text().split() == ["2", "partly_supported"]
        page.reload()
        assert asked == ["beforeunload"]
        heading(page, 2)
        expect(page.locator("#count")).to_have_text("2 of 4 labeled")
        found = downloaded(page, tmp_path, "Ana =B")
        page.reload()
        assert asked == ["beforeunload"]  # what is downloaded may be left
        expect(page.locator("#count")).to_have_text("2 of 4 labeled")
    assert (tmp_path / "labels-run-1-kind-Ana-B.csv").exists()
    assert [one.value for one in found] == ["supported", "partly_supported", None, None]
    assert [one.reason for one in found] == ["", "", "=1+1, it said", ""]
    assert {(one.annotator, one.scorer, one.run, one.selection, one.probability) for one in found} == {
        ("Ana =B", "kind", 1, "random", 1.0)
    }
    assert sorted((one.number, one.sample) for one in found) == [
        (0, "=s"), (1, 'two, "too"\nlong'), (2, f"d{EVIL}"), (3, "four"),
    ]  # fmt: skip


def test_keys_go_on_go_back_find_blanks_and_undo(labels, opened):
    with opened(labels) as page:
        press(page, "j ArrowRight ArrowRight ArrowRight")
        heading(page, 4)
        press(page, "ArrowLeft k 3 n")
        heading(page, 4)
        press(page, "n")
        heading(page, 1)
        press(page, "u")
        heading(page, 2)
        expect(page.locator("#count")).to_have_text("0 of 4 labeled")
        expect(page.locator("#said")).to_have_text("Sample 2: no label again.")
        press(page, "1 k 1")  # the same label again takes it back
        expect(page.locator("#count")).to_have_text("0 of 4 labeled")
        press(page, "9 x ?")  # nothing, nothing, and the keys
        expect(page.locator("dialog#keys")).to_be_visible()
        press(page, "2 Escape")
        expect(page.locator("#count")).to_have_text("0 of 4 labeled")


def test_a_key_that_is_held_down_gives_one_label(labels, opened):
    with opened(labels) as page:
        for _ in range(3):
            page.keyboard.down("1")
        heading(page, 2)
        expect(page.locator("#count")).to_have_text("1 of 4 labeled")


def test_labels_are_given_by_hand_and_the_end_is_said(labels, opened):
    with opened(labels, viewport=PHONE, has_touch=True) as page:
        for _ in range(4):
            page.get_by_role("button", name="unsupported", exact=False).last.tap()
        heading(page, 4)
        expect(page.locator("#said")).to_contain_text("All samples are labeled: download the labels.")
        expect(page.locator("#count")).to_have_text("4 of 4 labeled")


def test_a_number_is_given_where_there_are_no_labels(numbers, opened, tmp_path):
    with opened(numbers) as page:
        press(page, "0")
        page.keyboard.type(",5")
        press(page, "Enter")
        heading(page, 2, 3)
        page.fill("#number", "1.2")
        press(page, "Enter")
        told = "Give a number from 0 to 1, such as 0.5, or n/a if the question does not apply."
        expect(page.locator("#said")).to_have_text(told)
        heading(page, 2, 3)
        page.fill("#number", "1")
        press(page, "Enter u j")
        heading(page, 3, 3)
        page.fill("#number", "n/a")
        press(page, "Enter")
        assert [one.value for one in downloaded(page, tmp_path)] == ["0.5", None, "n/a"]


def test_labels_of_two_tabs_are_one_set(labels, opened):
    with opened(labels) as page:
        other = page.context.new_page()
        other.goto(labels.as_uri())
        press(page, "1 c")
        page.keyboard.type("so")
        expect(other.locator("#count")).to_have_text("1 of 4 labeled")
        press(other, "n 2")
        expect(page.locator("#count")).to_have_text("2 of 4 labeled")
        heading(page, 2)
        page.reload()
        expect(page.locator("#count")).to_have_text("2 of 4 labeled")


NO_STORAGE = "Object.defineProperty(window, 'localStorage', { get() { throw new Error('denied'); } });"


def test_where_nothing_may_be_kept_it_works_and_says_so(labels, opened, tmp_path):
    with opened(labels, script=NO_STORAGE) as page:
        expect(page.locator(".panel .note")).to_contain_text("cannot store your labels")
        press(page, "1 1 4 1")
        assert [one.value for one in downloaded(page, tmp_path)][2:] == ["not_applicable", "supported"]


def test_what_a_browser_kept_that_is_no_label_is_passed_over(labels, opened):
    with opened(labels) as page:
        for kept in ("[", '{"labels": 3}', '{"labels": [{"value": "<b>"}, null, 3, {"reason": 4}], "at": 9}'):
            page.evaluate("(kept) => localStorage.setItem(STORED, kept)", kept)
            page.reload()
            heading(page, 1)
            expect(page.locator("#count")).to_have_text("0 of 4 labeled")


def test_what_was_recorded_stays_text(labels, opened):
    with opened(labels) as page:
        seen = ""
        for _ in range(4):
            unfold(page)
            assert page.locator("main script, main img, main style, main [onerror]").count() == 0
            seen += page.evaluate("document.querySelector('main').textContent")
            press(page, "j")
        assert "<img src=x onerror=alert(2)>\\u202e{{ 7 * 7 }}" in seen


@LIGHT_AND_DARK
@pytest.mark.parametrize("name", ["labels", "numbers"])
def test_nothing_keeps_people_out(name, scheme, viewport, request, opened):
    with opened(request.getfixturevalue(name), color_scheme=scheme, viewport=viewport) as page:
        for keys in ("1 Enter", "n", "d"):
            press(page, keys)
            unfold(page)
            keeps_nobody_out(page)


def test_without_scripts_it_says_what_is_missing(labels, browser):
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto(labels.as_uri())
    assert "a browser with JavaScript" in page.inner_text("main")


def test_the_message_where_it_went_wrong_is_named_by_keys_or_a_click(opened, tmp_path, analyzed):  # noqa: F811
    path = written(analyzed(failing(["forgot it", "forgot that", "all is well"])), tmp_path / "sheet.html")
    with opened(path) as page:
        press(page, "1")  # forgot: the message is asked for before the next sample
        heading(page, 1, 3)
        expect(page.locator("#mark")).to_be_focused()
        page.keyboard.type("9")
        expect(page.locator("#mark")).to_have_attribute("aria-invalid", "true")
        press(page, "Backspace 2 Enter")
        heading(page, 2, 3)
        page.locator("#message-1 .place").click()
        assert page.locator("#mark").input_value() == "1"
        press(page, "1")
        heading(page, 3, 3)
        press(page, "3")  # none_visible
        keeps_nobody_out(page)
        labels = downloaded(page, tmp_path, "Ana")
    assert [(label.value, label.message) for label in labels] == [("forgot", 2), ("forgot", 1), ("none_visible", None)]


def test_turns_are_labeled_one_by_one_by_what_was_known_then(opened, tmp_path):
    scored = run([conversation(2), conversation(3)], [PromptScorer("tone", ScriptedJudge(answering), per_turn=True)])
    path = written(scored, tmp_path / "sheet.html")
    with opened(path) as page:
        assert re.fullmatch(r"Turn 1 of sample #\d · 1 of 5", page.locator("h1").inner_text())
        assert page.locator(".message.is-turn").count() == 4
        assert page.locator(".message").count() == 6
        assert page.locator("#mark").count() == 0
        press(page, "2 1")  # lacking, fitting
        assert page.locator("h1").inner_text().endswith(" 3 of 5")
        page.reload()
        press(page, "u k k j")
        keeps_nobody_out(page)
        labels = downloaded(page, tmp_path, "Ana")
    assert [(label.value, label.message) for label in labels][:2] == [("lacking", 3), ("fitting", 7)]
    assert [label.value for label in labels][2:] == [None, None, None]
