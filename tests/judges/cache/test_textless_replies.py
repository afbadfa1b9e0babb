"""What is kept of a reply where its words are not to be kept."""

import json
from enum import Enum, IntEnum
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from judgekit.judges.answer import read_answer
from judgekit.judges.cache.textless_replies import without_judge_text
from judgekit.judges.request import Reply, TokenLogprob
from judgekit.judges.schema import strict_schema
from judgekit.traces.message import Usage


class Color(Enum):
    RED = "red"


class Grade(IntEnum):
    GOOD = 1


class Step(BaseModel):
    quote: str
    message: int
    topic: str | None
    outcome: Literal["answered", "refused"]


class Opinion(BaseModel):
    reason: str
    steps: list[Step]
    words: list[str]
    color: Color
    grade: Grade
    share: float = Field(ge=0, le=1)
    sure: bool
    kind: Literal["only"]
    hint: Literal["a", "b"] | str  # noqa: PYI051 - some models are written so
    none: None


SAID = {
    "reason": "Mr Smith said so.",
    "steps": [{"quote": "Smith", "message": 3, "topic": None, "outcome": "refused"}],
    "words": ["Smith", ""],
    "color": "red",
    "grade": 1,
    "share": 0.5,
    "sure": True,
    "kind": "only",
    "hint": "b",
    "none": None,
}


def asks_for(question, answer, check=lambda _: None):
    """A request for an answer of this shape."""
    return question(schema=strict_schema(answer), accept=lambda text: check(read_answer(text, answer)))


def kept(question, said, answer=Opinion, **options):
    text = said if isinstance(said, str) else json.dumps(said)
    reply = without_judge_text(asks_for(question, answer, **options), Reply(text=text))
    return None if reply is None else json.loads(reply.text)


def test_the_judges_own_words_go_and_what_the_schema_lists_stays_with_all_numbers(question):
    assert kept(question, SAID) == SAID | {
        "reason": "",
        "steps": [{"quote": "", "message": 3, "topic": None, "outcome": "refused"}],
        "words": ["", ""],
    }


def test_a_word_that_is_listed_stays_and_another_in_its_place_goes(question):
    assert kept(question, SAID | {"hint": "a"})["hint"] == "a"
    assert kept(question, SAID | {"hint": "Smith"})["hint"] == ""


def test_what_stands_around_the_answer_goes_too(question):
    said = f"<think>Smith?</think>Smith says:\n```json\n{json.dumps(SAID)}\n```\nSo says Smith."
    assert kept(question, said) == kept(question, SAID)


def test_usage_cost_and_model_stay_and_the_tokens_go(question):
    reply = Reply(
        text=json.dumps(SAID),
        model="m",
        usage=Usage(input_tokens=3),
        cost_usd=0.1,
        logprobs=(TokenLogprob(token="Smith", logprob=-0.5),),  # noqa: S106 - a part of a word
    )
    alone = without_judge_text(asks_for(question, Opinion), reply)
    assert (alone.model, alone.usage, alone.cost_usd, alone.logprobs) == ("m", Usage(input_tokens=3), 0.1, None)
    assert "Smith" not in alone.model_dump_json()


@given(words=st.lists(st.text(alphabet="xyz", min_size=3), min_size=4, max_size=4))
def test_no_word_of_the_judge_is_ever_kept(question, words):
    reason, quote, topic, word = words
    step = {"quote": quote, "message": 1, "topic": topic, "outcome": "answered"}
    said = SAID | {"reason": reason, "steps": [step], "words": [word], "hint": word}
    text = json.dumps(kept(question, said))
    assert not any(one in text for one in words)


def test_an_answer_that_is_none_without_its_words_is_not_kept(question):
    def check(answer):
        if not answer.reason:
            raise ValueError("reason: is missing")

    assert kept(question, SAID, check=check) is None


class Counts(BaseModel):
    by_topic: dict[str, int]


class Quoted(BaseModel):
    quote: str = Field(min_length=1)


@pytest.mark.parametrize(("answer", "said"), [(Counts, {"by_topic": {"Smith": 1}}), (Quoted, {"quote": "Smith"})])
def test_an_answer_whose_very_names_or_length_are_words_is_not_kept(question, answer, said):
    request = question(schema=answer.model_json_schema(), accept=lambda text: read_answer(text, answer))
    assert request.accept(json.dumps(said))
    assert without_judge_text(request, Reply(text=json.dumps(said))) is None


def test_a_schema_that_allows_anything_lists_nothing(question):
    request = question(schema={"type": "object", "properties": {"a": True, "b": {}}})
    alone = without_judge_text(request, Reply(text='{"a": "Smith", "b": ["Smith", 1]}'))
    assert json.loads(alone.text) == {"a": "", "b": ["", 1]}


def test_what_is_no_answer_is_not_kept(question):
    assert kept(question, "Smith") is None


class Paid(BaseModel):
    amount: float
    card: int
    share: float = Field(ge=0, le=1)


@pytest.mark.parametrize(
    ("said", "is_kept"),
    [
        ({"amount": 3, "card": 9_999, "share": 0.123456}, True),
        ({"amount": 3, "card": 10_000, "share": 0.5}, False),
        ({"amount": 3, "card": -4111111111111111, "share": 0.5}, False),
        ({"amount": 12.5, "card": 1, "share": 0.5}, False),
    ],
)
def test_an_answer_with_a_number_that_may_be_of_the_conversation_is_not_kept(question, said, is_kept):
    assert kept(question, said, Paid) == (said if is_kept else None)


def test_what_a_provider_says_beside_its_token_counts_is_not_kept(question):
    reply = Reply(text=json.dumps(SAID), usage=Usage(input_tokens=3, extra={"Smith": "Smith"}))
    assert without_judge_text(asks_for(question, Opinion), reply).usage == Usage(input_tokens=3)
