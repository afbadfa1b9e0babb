"""How likely a judge's tokens made its label: the probability that a model had for it, however it spells."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.judges.label_probability import label_probability
from judgekit.judges.request import TokenLogprob

LABELS = ("done", "done_in_part", "not_done", "not_applicable")


def token(text: str, probability: float = 1.0, **others: float) -> TokenLogprob:
    """A token, with those that might have stood in its place."""
    listed = [TokenLogprob(token=text, logprob=math.log(probability))]
    listed += [TokenLogprob(token=other, logprob=math.log(p)) for other, p in others.items()]
    return TokenLogprob(token=text, logprob=math.log(probability), top_logprobs=listed)


def found(*tokens: TokenLogprob, chosen: str = "done", labels: Sequence[str] = LABELS) -> float | None:
    return label_probability(tokens, "verdict", chosen, labels)


HEAD = token('{"reason": "x", "verdict": ')
TAIL = token("}")


def test_a_label_of_one_token_is_as_likely_as_its_token():
    tokens = HEAD, token('"'), token("done", 0.7, not_done=0.2, done_in_part=0.1), token('"'), TAIL
    assert found(*tokens) == pytest.approx(0.7)


def test_what_can_be_no_label_or_may_yet_be_any_takes_nothing_from_it():
    tokens = HEAD, token('"', 0.5, **{' "': 0.3, "{": 0.1}), token("done", 0.6, not_done=0.2, maybe=0.2), token('"')
    assert found(*tokens, TAIL) == pytest.approx(0.5 * 0.6 / (1 - 0.4 - 0.5 * 0.2))


def test_other_tokens_for_the_same_label_count_for_it():
    tokens = HEAD, token('"'), token("done", 0.6, not_done=0.3, **{'done"': 0.1}), token('"'), TAIL
    assert found(*tokens) == pytest.approx(0.7)


def test_a_label_in_another_case_is_the_label_also_among_the_alternatives():
    tokens = HEAD, token('"'), token("Done", 0.6, Not_done=0.3, **{'DONE"': 0.1}), token('"'), TAIL
    assert found(*tokens) == pytest.approx(0.7)


def test_a_label_that_shares_its_tokens_with_what_stands_around_it_is_found():
    tokens = token('{"reason": "x", "verdict'), token('":"done', 0.7, **{'":"not': 0.3}), token('"}')
    assert found(*tokens) == pytest.approx(0.7)


@pytest.mark.parametrize(
    "tokens",
    [
        (token('{"verdict":'), token(" ", 0.6, **{' "not': 0.4}), token('"done"')),
        (token('{"verdict":'), token(' "done', 0.6, **{'"not': 0.4}), token('"')),
        (token('{"verdict'), token('": "done', 0.6, **{'":"not': 0.4}), token('"')),
        (token('{"verdict":'), token(' "done"', 0.3, **{'"done"': 0.3, '\n"not': 0.4})),
    ],
)
def test_a_label_is_the_same_one_with_and_without_a_blank_before_it(tokens):
    assert found(*tokens, TAIL) == pytest.approx(0.6)


@pytest.mark.parametrize(
    "reply", ['{"verdict": "sure"}', '{"verdict": 1}', '{"reason": "done"}', r'{"reason": "\"verdict\": \"done\""}', ""]
)
def test_a_label_that_does_not_stand_there_has_no_likelihood(reply):
    assert found(token(reply)) is None


def test_thoughts_and_reasons_that_speak_of_a_verdict_are_not_taken_for_it():
    said = token(r'<think>"verdict": "not_done"?</think>{"reason": "\"verdict\": \"not_done\"", "verdict": ')
    label = token('"done"', 0.7, **{'"not_done"': 0.3})
    assert found(said, label, TAIL) == pytest.approx(0.7)


@pytest.mark.parametrize("logprob", [math.nan, -math.inf, -9_999.0])
def test_a_probability_that_is_none_gives_none(logprob):
    label = TokenLogprob(token='"done"', logprob=logprob)  # noqa: S106 - no password
    assert found(HEAD, label, TAIL) is None


def test_a_probability_above_one_is_one():
    label = TokenLogprob(token='"done"', logprob=1e9)  # noqa: S106 - no password
    assert found(HEAD, label, TAIL) == 1


@given(
    st.lists(st.integers(1, 100), min_size=len(LABELS), max_size=len(LABELS)),
    st.sampled_from(LABELS),
    st.integers(1, 6),
    st.integers(0, 3),
)
def test_it_is_what_the_model_gave_the_label_whatever_the_tokens(weights, chosen, size, shift):
    """A model that spells its replies in pieces of one size, and knows all that might come next."""
    shares = {label: weight / sum(weights) for label, weight in zip(LABELS, weights, strict=True)}
    replies = {label: json.dumps({"reason": "x" * shift, "verdict": label}) for label in LABELS}
    assert found(*spelled(replies, shares, chosen, size), chosen=chosen) == pytest.approx(shares[chosen])


def spelled(replies: Mapping[str, str], shares: Mapping[str, float], chosen: str, size: int) -> Iterator[TokenLogprob]:
    for start in range(0, len(replies[chosen]), size):
        alike = [label for label, reply in replies.items() if reply[:start] == replies[chosen][:start]]
        next_: dict[str, float] = {}
        for label in alike:
            piece = replies[label][start : start + size]
            next_[piece] = next_.get(piece, 0) + shares[label] / sum(shares[one] for one in alike)
        own = replies[chosen][start : start + size]
        yield token(own, next_.pop(own), **next_)
