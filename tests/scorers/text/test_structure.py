"""JSON match and JSON difference."""

import asyncio
import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.score import Score
from judgekit.scorers.text.structure import JSONDiff, JSONMatch
from judgekit.scoring import attempt
from judgekit.traces.message import AIMessage
from judgekit.traces.sample import Sample

MATCH, DIFF = JSONMatch(), JSONDiff()

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.sampled_from([0.5, 1.0, 1e30, 10**30])
    | st.text("aé1", max_size=2)
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "0", "a b"]), inner, max_size=3)
    ),
    max_leaves=8,
)


def sample(response: str | None, *references: str) -> Sample:
    messages = [] if response is None else [AIMessage(response)]
    return Sample.of(messages, id="one", references=references or None)


def leaves(value, path=()) -> dict:
    """All leaves by path, with their types: an array's by place, an object's by key."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = {}
    for step, inner in parts:
        found |= leaves(inner, (*path, step))
    if found:
        return found
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return {path: ("number", Fraction(value)) if number else (type(value), repr(value))}


@given(values, values)
def test_the_value_is_the_share_of_paths_with_equal_leaves(expected, found):
    wanted, there = leaves(expected), leaves(found)
    agreed = sum(there.get(path) == leaf for path, leaf in wanted.items())
    texts = sample(json.dumps(found), json.dumps(expected))
    score = DIFF.score(texts)
    assert score.value == float(Fraction(agreed, len(wanted | there)))
    assert (score.details["agreed"], score.details["leaves"]) == (agreed, len(wanted | there))
    assert len(score.details["differences"]) == len(wanted | there) - agreed
    assert MATCH.score(texts).value == (score.value == 1)


@given(values, st.sampled_from([None, 1]), st.booleans())
def test_how_json_is_written_is_free(value, indent, escaped):
    def turned(part):
        if isinstance(part, dict):
            return {key: turned(part[key]) for key in reversed(part)}
        return [*map(turned, part)] if isinstance(part, list) else part

    texts = sample(json.dumps(turned(value), indent=indent, ensure_ascii=escaped), json.dumps(value))
    assert (MATCH.score(texts).value, DIFF.score(texts).value) == (1, 1)


PAIRS = {
    "whole numbers with a point": ("75", "75.0", 1),
    "an exponent": ("1e2", "100", 1),
    "a number and a text": ("75", '"75"', 0),
    "true and 1": ("[true]", "[1]", 0),
    "false and 0": ('{"a": false}', '{"a": 0}', 0),
    "null and nothing": ('{"a": null}', "{}", 0),
    "an empty array and an empty object": ("[]", "{}", 0),
    "large whole numbers": ("9007199254740993", "9007199254740992", 0),
    "places and keys": ('{"0": 1}', "[1]", 0),
}


def test_values_are_compared_with_their_types():
    for response, reference, share in PAIRS.values():
        for texts in (sample(response, reference), sample(reference, response)):
            assert (MATCH.score(texts).value, DIFF.score(texts).value) == (share == 1, share)


def test_the_best_reference_counts_and_differences_say_where():
    response = '{"a": [1, {"b c": null}], "d": "x"}'
    texts = sample(response, "{}", '{"a": [1, {"b c": 3}], "e": {}}', " ")
    found = DIFF.score(texts)
    assert found.reason == (
        '1 of 4 leaves agree, most of 2 references; $.a[1]["b c"] expected 3, found null; $.e expected {}, found nothing; '
        '$.d expected nothing, found "x"'
    )
    assert found.details == {
        "reference": '{"a": [1, {"b c": 3}], "e": {}}',
        "values": [0, 0.25],
        "agreed": 1,
        "leaves": 4,
        "differences": [
            {"path": '$.a[1]["b c"]', "expected": 3, "found": None},
            {"path": "$.e", "expected": {}},
            {"path": "$.d", "found": "x"},
        ],
        "more": 0,
    }
    matched = MATCH.score(texts)
    assert (matched.value, matched.reason, matched.details) == (0, found.reason, found.details)


def test_many_differences_are_counted_and_the_first_are_shown():
    found = DIFF.score(sample(json.dumps([0] * 60), json.dumps([1] * 60)))
    assert [one["path"] for one in found.details["differences"]] == [f"$[{at}]" for at in range(50)]
    assert found.details["more"] == 10
    assert found.reason.startswith("0 of 60 leaves agree; $[0] expected 1, found 0; ")
    assert found.reason.endswith("$[4] expected 1, found 0; and 55 more")


NO_JSON = {
    "": "line 1 column 0",
    " \n": "line 2 column 0",
    "Paris": "line 1 column 1",
    "```json\n{}\n```": "line 1 column 1",
    '{"a": 1,\n "b"}': "line 2 column 5",
    "[1,]": "line 1 column 4",
    "{} {}": "line 1 column 4",
    "NaN": "line 1 column 1",
    "-Infinity": "line 1 column 2",
    "1e999": "the number 1e999 is too large",
    "9" * 5000: "number out of range at line 1 column 4302",
    '"\\ud800"': "line 1 column 8",
    '"\ud800"': "line 1 column 8",
    '[{"a": 1, "b": 2, "a": 1}]': "the key 'a' appears twice in an object",
    "[" * 10**5 + "]" * 10**5: "recursion limit exceeded at line 1 column 202",
}


@pytest.mark.parametrize("scorer", [MATCH, DIFF], ids=lambda scorer: scorer.name)
class TestBoth:
    def test_a_response_that_is_no_json_scores_0_and_says_where(self, scorer):
        for response, error in NO_JSON.items():
            found = scorer.score(sample(response, "1"))
            assert (found.status, found.value) == ("scored", 0), response[:20]
            assert found.details["error"].endswith(error)
            assert found.reason == f"the response is not JSON: {found.details['error']}"

    def test_a_reference_that_is_no_json_is_an_error(self, scorer):
        found = asyncio.run(attempt(scorer, sample("1", "1", '{"a"')))
        assert found == Score.failed(
            scorer.name,
            "ValueError: a reference is not JSON: EOF while parsing an object at line 1 column 4, in '{\"a\"'",
            error="ValueError",
        )

    def test_without_a_response_or_a_reference_a_sample_is_skipped(self, scorer):
        assert scorer.score(sample(None, "1")).status == "skipped"
        assert scorer.score(sample("1")) == Score.skipped(scorer.name, "the sample has no reference")

    def test_what_is_large_or_deep_is_compared_and_can_be_written_down(self, scorer):
        for one, other in {
            "[" * 200 + "1" + "]" * 200: "[" * 200 + "2" + "]" * 200,
            "9" * 4000: "8" * 4000,
            f'{{"{"k" * 10**5}": 1}}': "{}",
            json.dumps(["text 句子 😀"] * 10**4): json.dumps(["text"] * 10**4),
        }.items():
            found = scorer.score(sample(one, other))
            assert (found.value, found.status) == (0, "scored")
            assert len(found.reason) < 1200
            assert Score.model_validate_json(found.model_dump_json()) == found
            assert scorer.score(sample(one, one)).value == 1
