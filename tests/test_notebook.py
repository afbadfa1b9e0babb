"""HTML as notebooks show it."""

from html.parser import HTMLParser

import pytest

from judgekit import AIMessage, Sample, Score, ToolCall, ToolCallF1
from judgekit.score import JudgeCall
from judgekit.traces.message import Usage

HOSTILE = [
    "<script>alert(1)</script>",
    "</td></table><img src=x onerror=alert(1)>",
    "&lt;b&gt; \"'",
    "$x$ \\(y\\) $$z$$",
]


class Shown(HTMLParser):
    """The tags with their attributes, and the texts between them."""

    def __init__(self, found: object) -> None:
        super().__init__()
        self.tags: list[tuple[str, object]] = []
        self.texts: list[str] = []
        self.feed(found._repr_html_())  # type: ignore[attr-defined] - what is shown has one

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append((tag, attrs))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def saying(text: str) -> list[Score]:
    call = JudgeCall(judge=text, prompt=text, error=text)
    details = {text: text, "number": 1, "goals": [{text: text, "deep": [text]}], "one": {text: text}, "list": [text]}
    calls = {"pairs": [], "missing": [{"name": text, "expected": 0}], "extra": [{"name": text, "args": {text: text}}]}
    return [
        Score.scored(text, 0.5, reason=text, label=text, details=details, calls=[call], warnings=[text]),
        Score.scored(text, 0.5, reason=text, details=calls),
        Score.failed(text, text, error=text, calls=[call]),
    ]


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("text", HOSTILE)
def test_all_that_a_score_says_is_text(text, place):
    hostile, harmless = (Shown(saying(said)[place]) for said in (text, "said"))
    assert hostile.tags == harmless.tags
    assert text in hostile.texts


@pytest.mark.parametrize("score", [Score.scored("f1", 1), Score.skipped("f1", "none"), saying("a")[0]])
def test_no_formula_is_looked_for_in_it(score):
    assert Shown(score).tags[0] == ("div", [("class", "tex2jax_ignore mathjax_ignore")])


def test_colors_are_the_notebook_s_own():
    assert "color" not in "".join(score._repr_html_() for score in saying("said"))


def test_calls_stand_side_by_side_above_the_numbers_that_they_make():
    uv, weather, air = (ToolCall(name, {"city": "Paris"}) for name in ("uv_index", "weather", "air"))
    sample = Sample.of(
        [AIMessage(tool_calls=[weather, air])], reference_tool_calls=[uv, ToolCall("weather", {"city": "Rome"})]
    )
    assert Shown(ToolCallF1().score(sample)).texts == [
        *("tool_call_f1", " 0.000"),
        '0 of 2 expected calls matched; weather: args.city expected "Rome", got "Paris"; missing: uv_index; extra: air (message 1)',
        *("expected", "made"),
        *("missing", 'uv_index  city: "Paris"'),
        *("differs", 'weather  city: "Rome"', '1: weather  city: "Paris"'),
        *("not expected", '1: air  city: "Paris"'),
        *("tp", "fp", "fn", "precision", "recall"),
        *("0", "2", "2", "0.0", "0.0"),
    ]


def test_what_a_judge_said_and_took_is_shown():
    calls = [
        JudgeCall(judge="openai/a", prompt="p", usage=Usage(input_tokens=1_000, output_tokens=200), cost_usd=0.0125),
        JudgeCall(judge="openai/b", prompt="p", cached=True),
    ]
    details = {
        "evidence": [1, 2],
        "goals": [{"goal": "book", "met": True}, {"goal": "pay", "met": None}],
        "share": 2 / 3,
    }
    score = Score.scored("goal", 0.5, label="partly", reason="paid", details=details, calls=calls, confidence=0.8)
    assert Shown(score).texts == [
        *("goal", " 0.500 (partly)", "paid", "confidence 0.80"),
        "2 calls of openai/a, openai/b, 1 from cache: 1,200 tokens, $0.0125",
        *("share", "0.667"),
        *("evidence", "[1,2]"),
        *("goals", "goal: book; met: true\ngoal: pay; met: null"),
    ]


@pytest.mark.parametrize(
    ("score", "texts"),
    [
        (Score.skipped("goal", "no goal"), ["goal", " skipped", "no goal"]),
        (Score.abstained("goal", "a tie"), ["goal", " abstained", "a tie"]),
        (
            Score.failed("goal", "busy", calls=[JudgeCall(judge="openai/a", prompt="p")]),
            ["goal", " failed", "busy", "1 call of openai/a, 0 from cache: tokens unknown, cost unknown"],
        ),
    ],
)
def test_a_score_without_a_value_shows_its_status(score, texts):
    assert Shown(score).texts == texts


def test_what_is_long_is_cut_and_says_so():
    details = {**{f"text {number}": "x" for number in range(40)}, "items": [{"a": 1}] * 12}
    shown = Shown(Score.scored("s", 1, reason="y" * 5_000, details={"items": details.pop("items"), **details}))
    assert "and 11 more" in shown.texts  # of 41, 30 are shown
    assert next(text for text in shown.texts if "a: 1" in text).splitlines()[10:] == ["and 2 more"]
    assert any("[... 4,000 characters omitted ...]" in text for text in shown.texts)
    assert len(Score.scored("s", 1, details={"deep": [[["z" * 9_999]]]})._repr_html_()) < 3_000


def test_a_number_that_is_too_long_to_be_written_does_not_keep_a_score_from_being_shown():
    shown = Shown(Score.scored("s", 1, details={"n": 10**5_000, "list": [10**5_000]}))
    assert shown.texts == ["s", " 1.000", "n", "too long to show", "list", "too long to show"]
