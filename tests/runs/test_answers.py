"""Which models answered for each judge."""

from collections import Counter
from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from judgekit.runs.answers import AnswerCounts, format_shares, quote_name
from judgekit.score import JudgeCall

names = st.one_of(st.none(), st.sampled_from(["m-1", "m-2", "\x1b[2J", "a (3), b", "x" * 500]), st.text(max_size=20))
calls = st.builds(
    JudgeCall,
    judge=st.sampled_from(["openai/a", "openai/b"]),
    prompt=st.just("p"),
    model=names,
    system_fingerprint=names,
    error=st.sampled_from([None, None, "OverloadError"]),
)


def answers(*found: JudgeCall) -> AnswerCounts:
    made = AnswerCounts()
    for call in found:
        made.add(call)
    return made


def by(model: str | None, fingerprint: str | None = None, times: int = 1) -> list[JudgeCall]:
    return [JudgeCall(judge="openai/a", prompt="p", model=model, system_fingerprint=fingerprint)] * times


def told(*found: list[JudgeCall]) -> list[str]:
    return list(answers(*chain(*found)).notes())


@given(st.lists(calls))
def test_each_answer_is_counted_by_what_was_reported_with_it(found):
    made, answered = answers(*found), [call for call in found if call.error is None]
    for reported, name in ((made.models, "model"), (made.fingerprints, "system_fingerprint")):
        expected = Counter((call.judge, getattr(call, name)) for call in answered)
        assert {(judge, one): times for judge, names in reported.items() for one, times in names.items()} == expected


@given(st.lists(calls))
def test_what_is_said_is_on_one_line_and_steers_nothing(found):
    for line in answers(*found).notes():
        assert line.isprintable()
        assert len(line) < 2_000


def test_answers_without_a_model_are_counted_beside_the_others():
    assert told(by("m-1", times=2), by(None)) == ["openai/a answered as 1 model: m-1 (2), not reported (1)"]
    assert told(by("m-1"), by(None), by("m-2", times=2)) == [
        "openai/a answered as 2 models: m-2 (2), m-1 (1), not reported (1)"
    ]


def test_fingerprints_are_not_spoken_of_beside_models():
    assert told(by("m-1", "a"), by("m-2", "b")) == ["openai/a answered as 2 models: m-1 (1), m-2 (1)"]
    assert told(by("m-1", "a"), by("m-1", "b"), by("m-1")) == [
        "openai/a answered with 2 system fingerprints: a (1), b (1), not reported (1)"
    ]
    assert told(by("m-1", "a"), by("m-1")) == told(by(None, "a")) == told() == []


def test_a_name_cannot_be_taken_for_another():
    assert quote_name("meta/llama-3:70b@fp8") == "meta/llama-3:70b@fp8"
    assert format_shares(Counter(["a (3), b", "not reported"])) == "'a (3), b' (1), 'not reported' (1)"
