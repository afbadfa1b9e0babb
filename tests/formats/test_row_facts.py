"""Known facts in rows, whatever the format of their conversation."""

import json
import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError

from judgekit.errors import TraceError
from judgekit.formats.reading import read
from judgekit.formats.row_facts import make_sample, to_text
from judgekit.traces.sample import Ranking, Sample

CONVERSATIONS = {
    "openai-chat": {"messages": [{"role": "user", "content": "q"}]},
    "ragas": {"user_input": "q"},
    "rows": {"input": "q", "response": "a"},
}


@pytest.fixture(params=[*CONVERSATIONS, *(f"references of {name}" for name in CONVERSATIONS)])
def sample_of(request, tmp_path):
    """Return a sample whose row holds some facts, beside its conversation or in a file of references."""
    name = request.param.removeprefix("references of ")

    def find(known: dict) -> Sample:
        path, references = tmp_path / "a.jsonl", None
        row = CONVERSATIONS[name]
        if name == request.param:
            row = row | known
        else:
            references = tmp_path / "r.jsonl"
            references.write_text(json.dumps({"input": "q", **known}))
        path.write_text(json.dumps(row))
        told: list[TraceError] = []
        samples = list(read(path, references=references, on_error=told.append))
        if errors := [one for one in told if "read as its JSON" not in str(one) and "one string" not in str(one)]:
            raise errors[0]
        [sample] = samples
        assert sample.trace.source.format == name
        return sample

    return find


def test_a_reference_is_a_text_or_a_list_or_else_what_was_expected(sample_of):
    cases = [
        ({"reference": "r"}, "r", None),
        ({"reference": ["a", "", "b"]}, None, ("a", "", "b")),
        ({"reference": "r", "references": ["a"]}, "r", ("a",)),
        ({"reference": 5}, "5", None),
        ({"reference": 5.0}, "5", None),
        ({"reference": False}, "false", None),
        ({"reference": ["a", 5, 0.5, True]}, None, ("a", "5", "0.5", "true")),
        ({"references": [1, "b"]}, None, ("1", "b")),
        ({"reference": ""}, "", None),
        ({"reference": []}, None, ()),
        ({"expected_output": "e"}, "e", None),
        ({"expected_output": ["e", "f"]}, None, ("e", "f")),
        ({"expected_output": [1, 2]}, "[1, 2]", None),
        ({"expected_output": {"a": 1.0}}, '{"a": 1.0}', None),
        ({"expected_output": 1.0}, "1", None),
        ({"expected_output": {"answer": "e"}}, "e", None),
        ({"reference": {"answer": "r"}}, "r", None),
        ({"reference": {"a": 1.0, "b": ["c"]}}, '{"a": 1.0, "b": ["c"]}', None),
        ({"reference": {}}, "{}", None),
        ({"reference": ["a", []]}, '["a", []]', None),
        ({"reference": [{"a": 1}], "references": ["b"]}, '[{"a": 1}]', ("b",)),
        ({"references": ["a", {"b": 1}, [2]]}, None, ("a", '{"b": 1}', "[2]")),
        ({"expected_output": "e", "reference": {"a": 1, "b": 2}}, '{"a": 1, "b": 2}', None),
        ({"expected_output": "e", "reference": "r"}, "r", None),
        ({"expected_output": "e", "reference": 0}, "0", None),
        ({"expected_output": "e", "references": ["", "a"]}, None, ("", "a")),
        ({"expected_output": "e", "reference": " "}, "e", None),
        ({"expected_output": "e", "reference": []}, "e", None),
        ({"expected_output": ["e"], "reference": ""}, None, ("e",)),
        ({"expected_output": "e", "references": []}, "e", None),
        ({"expected_output": ["e"], "references": ["", " "]}, None, ("e",)),
    ]
    for row, reference, references in cases:
        sample = sample_of(row)
        assert (sample.reference, sample.references) == (reference, references)
        kept = {"expected_output": "e"} if row == {"expected_output": {"answer": "e"}} else row
        assert sample.fields == {name: kept[name] for name in ("expected_output",) if name in kept}


def test_numbers_where_texts_belong_are_text(sample_of):
    for name in ["label", "prediction", "group", "domain"]:
        values = ["a", 1, 1.0, -0.5, True, "", None]
        assert [getattr(sample_of({name: value}), name) for value in values] == [
            "a",
            "1",
            "1",
            "-0.5",
            "true",
            "",
            None,
        ]


def test_what_is_measured_and_ranked_is_known_without_a_reference(sample_of):
    fields = {"results": [{"score": 1, "domain": "d"}], "task_time": 3, "task_quality": 0.5}
    ranking = {"retrieved": ["a"], "relevance": {"a": 1}}
    sample = sample_of({**fields, "ranking": ranking, "prediction_score": 1, "metadata": {"m": 1}})
    assert (sample.fields, sample.ranking, sample.reference) == (fields, Ranking(["a"], {"a": 1}), None)
    assert (sample.prediction_score, sample.metadata) == (1.0, {"m": 1})


texts = st.sampled_from(["", "a", "\u20ac", "\ud800", "nan", "$judgekit"])
values = st.recursive(
    texts | st.sampled_from([None, True, 1, 0.5, math.nan, math.inf]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
plain = {"name": texts, "args": st.dictionaries(texts, values, max_size=2)}
other = {"id": texts, "turn": st.integers(-1, 1), "compare_args": st.lists(texts), "more": st.none()}
calls = st.fixed_dictionaries(plain) | st.fixed_dictionaries(plain, optional=other)


@given(st.lists(calls, max_size=2))
@example([{"name": 3, "args": {}}])
@example([{"name": "a", "args": "{}"}])
@example([{"name": "a"}])
@example(["a"])
@example("a")
def test_expected_calls_are_those_that_validation_finds(expected):
    def found(make):
        try:
            return make().model_dump()
        except (TraceError, ValidationError):
            return None

    known = {"id": "s", "reference_tool_calls": expected}
    assert found(lambda: make_sample("s", known)) == found(lambda: Sample.model_validate(known))


def test_an_id_that_is_a_whole_number_is_written_as_one(tmp_path):
    path = tmp_path / "a.jsonl"
    for conversation in CONVERSATIONS.values():
        for identity, text in (("a", "a"), (7, "7"), (7.0, "7"), (None, "0")):
            path.write_text(json.dumps({**conversation, "id": identity}))
            [sample] = read(path, on_error="raise")
            assert (sample.id, sample.trace.id) == (text, text)


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers())
def test_a_number_as_text_is_that_number(number):
    assert json.loads(to_text(number)) == number


@pytest.mark.parametrize("number", [1e16, 1e300, -1e300])
def test_a_number_that_is_no_longer_exact_is_not_written_out(number):
    assert to_text(number) == json.dumps(number)
