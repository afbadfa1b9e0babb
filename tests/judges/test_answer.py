"""How a judge's words become an answer, and which of them are refused."""

import enum
import json
import time
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from judgekit.judges.answer import read_answer


class Finding(BaseModel):
    message: int
    grade: Literal["1", "2", "3"]


class Opinion(BaseModel):
    reason: str
    findings: list[Finding] = []
    share: float = Field(default=0.5, ge=0, le=1)
    verdict: Literal["yes", "no"]


WRITTEN = '{"reason": "It is {so}.", "verdict": "yes"}'
OPINION = Opinion(reason="It is {so}.", verdict="yes")


# What is plain is read.


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(WRITTEN, id="alone"),
        pytest.param(f"\ufeff{WRITTEN}", id="behind a byte order mark"),
        pytest.param(f"```json\n{WRITTEN}\n```", id="fenced"),
        pytest.param(f"Here you are: {WRITTEN} Anything else?", id="in prose"),
        pytest.param(f"Of the set {{a, b}}, \\boxed{{b}} holds: {WRITTEN}", id="in prose with other braces"),
        pytest.param(f"[{WRITTEN}]", id="the only one in a list"),
        pytest.param(f"{WRITTEN}\n\nAgain:\n{json.dumps(json.loads(WRITTEN))}", id="said twice, and the same"),
        pytest.param(f'<think>no? {{\'a\': 1}} {{"verdict": "no"}} or\nyes</think>\n{WRITTEN}', id="after thoughts"),
        pytest.param(WRITTEN[:-1] + ', "verdict": "yes"}', id="with a key said twice, and the same"),
    ],
)
def test_one_object_is_read_wherever_it_stands(text):
    assert read_answer(text, Opinion) == OPINION


class Level(enum.Enum):
    LOW = "0"
    HIGH = "1"


class Graded(BaseModel):
    grade: Literal["1", "2"]
    best: Literal["5"] | None = None
    level: Level = Level.LOW
    findings: list[Finding] = []
    count: int = 0
    free: Literal["1"] | int = "1"


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ({"grade": 1}, {"grade": "1"}),
        ({"grade": "2", "best": 5}, {"grade": "2", "best": "5"}),
        ({"grade": "2", "level": 1}, {"grade": "2", "level": "1"}),
        (
            {"grade": 2, "findings": [{"message": 3, "grade": 3}]},
            {"grade": "2", "findings": [{"message": 3, "grade": "3"}]},
        ),
        ({"grade": 1, "count": 1, "free": 1}, {"grade": "1", "count": 1, "free": 1}),
    ],
    ids=str,
)
def test_a_whole_number_is_read_as_text_where_only_texts_are_allowed(said, meant):
    assert read_answer(json.dumps(said), Graded) == Graded.model_validate(meant)


class Odd(BaseModel):
    grade: Literal["1", "2.5", "True"]


def test_what_is_no_whole_number_for_one_of_the_texts_is_shown_as_it_came():
    for grade in [7, -1, 1.0, 2.5, True, None, [1]]:
        with pytest.raises(ValueError, match=r"^grade: Input should be '1', '2.5' or 'True', found ") as info:
            read_answer(json.dumps({"grade": grade}), Odd)
        assert str(info.value).endswith(f"found {grade!r}")


opinions = st.builds(
    Opinion,
    reason=st.text(st.characters(exclude_categories=["Cs"]), max_size=30),
    findings=st.lists(st.builds(Finding, message=st.integers(), grade=st.sampled_from("123")), max_size=3),
    share=st.floats(0, 1),
    verdict=st.sampled_from(["yes", "no"]),
)


@given(opinions, st.sampled_from(["", "Well: ", "```json\n", "<think>{</think>"]), st.booleans())
def test_what_a_model_writes_is_what_is_read(opinion, before, ascii_only):
    text = json.dumps(json.loads(opinion.model_dump_json()), ensure_ascii=ascii_only)
    assert read_answer(before + text + "\n```", Opinion) == opinion


# What is doubtful is not.


REFUSED = [
    ("", "^the reply is empty$"),
    ("<think>yes</think>", "^the reply holds no JSON object, found '<think>yes</think>'$"),
    ("{}", "^reason: Field required, found {}; verdict: Field required, found {}$"),
    (f"{WRITTEN} Or {WRITTEN.replace('yes', 'no')}", "^the reply holds two different JSON objects, "),
    (f'[{WRITTEN}, {{"verdict": "no"}}]', "^the reply holds two different JSON objects, "),
    ('{"a": 1} {"a": true}', "^the reply holds two different JSON objects, "),
    (
        f'{WRITTEN} But {{"verdict": "no"',
        "^the reply's JSON is broken: Expecting ',' delimiter: character 64, found its end$",
    ),
    ('{"verdict": "no" Rather: ' + WRITTEN, "^the reply's JSON is broken: .*: character 17, found 'Rather: "),
    ('{"verdict": "yes", "reason": "", "verdict": "no"}', "^the reply says 'verdict' twice, and differently$"),
    (
        '{"verdict": "yes", "reason": "so',
        "^the reply's JSON is broken: Unterminated string starting at: character 29, found '\"so'$",
    ),
    ('{"share": NaN}', "^the reply holds NaN, which is no number$"),
    ('{"share": 1e999}', "^the reply holds the number '1e999', which is too large$"),
    (WRITTEN[:-1] + ', "share": "high"}', "^share: Input should be a valid number.*, found 'high'$"),
    ('{"verdict": "yes"}', "^reason: Field required, found {'verdict': 'yes'}$"),
    ('{"reason": "\\ud800", "verdict": "yes"}', "Invalid JSON: .*(hex escape|surrogate)"),
    ('{"a":' * 100_000, "^the reply's JSON is nested too deeply$"),
]


def test_what_is_no_plain_answer_is_refused_with_words_that_say_why():
    for text, found in REFUSED:
        with pytest.raises(ValueError, match=found) as info:
            read_answer(text, Opinion)
        assert len(str(info.value)) < 400
        assert str(info.value).isprintable()


@given(st.text(st.sampled_from('{}[]":,\\ \n1truenl`<think/>'), max_size=40))
def test_no_reply_is_too_strange_to_be_refused(text):
    try:
        found = read_answer(text, Opinion)
    except ValueError:
        return
    assert found == Opinion.model_validate_json(found.model_dump_json())


N = 250_000
LONG = {
    "braces": "{" * N,
    "objects within objects": '{"a":' * (N // 5),
    "texts that do not end": '{"a' * (N // 3),
    "one text that does not end": '{"a": "' + "x" * (N - 7),
    "different objects": "".join(f'{{"a":{number}}}' for number in range(N // 11)),
    "one object in one key again and again": "{" + '"a":{"a":1},' * (N // 12 - 1) + '"a":2}',
    "thoughts": "<think>" * (N // 7),
    "prose": "x" * N,
}


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_many_characters_are_refused_within_a_moment(text):
    assert N * 0.9 < len(text) <= N
    started = time.process_time()
    with pytest.raises(ValueError, match=r"^(the reply|reason: Field required)"):
        read_answer(text, Opinion)
    assert time.process_time() - started < 5  # what is not linear takes minutes


@pytest.mark.parametrize("text", ["x" * 10_000_000, '{"reason": "' + "x" * 10_000_000 + '", "verdict": "yes"}'])
def test_ten_megabytes_are_no_answer(text):
    with pytest.raises(ValueError, match=r"^the reply is 10,000,.*characters long; an answer has at most 1,000,000$"):
        read_answer(text, Opinion)


def test_a_long_answer_is_an_answer():
    long = Opinion(reason="x" * 900_000, verdict="no")
    assert read_answer(long.model_dump_json(), Opinion) == long
