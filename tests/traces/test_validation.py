"""What Python code gives as samples."""

from collections.abc import Iterator

import pytest

from judgekit.errors import ConfigError
from judgekit.scorers.tool_calls.f1 import ToolCallF1
from judgekit.traces.message import AIMessage, HumanMessage
from judgekit.traces.sample import Sample
from judgekit.traces.validation import check_sample, check_samples

SAMPLE = Sample.of([HumanMessage("Hi"), AIMessage("Hello")])
CONVERSATION = "Sample.of([HumanMessage(...), AIMessage(...)])"
OTHERS = [
    (SAMPLE.trace, 'of type Trace: wrap it in a sample, Sample(id="...", trace=trace)'),
    ({"input": "Hi"}, f"of type dict: build a sample from it, {CONVERSATION}, or write such rows to a .jsonl file"),
    (ToolCallF1(), "of type ToolCallF1: the scorers come after the samples, run(samples, scorers)"),
    (HumanMessage("Hi"), "HumanMessage("),
    (None, f"None: read samples from a file, or build them with {CONVERSATION}"),
]


def test_what_is_no_sample_is_named_by_its_place_before_any_sample_of_a_list_is_given():
    for found, told in [
        *OTHERS,
        ("a.jsonl", f"'a.jsonl': read samples from a file, or build them with {CONVERSATION}"),
    ]:
        with pytest.raises(ConfigError) as caught:
            check_samples([SAMPLE, found])
        assert str(caught.value).startswith(f"samples[1] is {told}")
        with pytest.raises(ConfigError) as caught:
            check_sample(found, "this")
        assert str(caught.value).startswith(f"this is {told}")


def test_what_is_no_collection_of_samples_says_what_to_write():
    for found, told in OTHERS:
        with pytest.raises(ConfigError) as caught:
            check_samples(found)
        assert str(caught.value).startswith(f"samples is {told}")


def test_one_sample_is_no_list():
    with pytest.raises(ConfigError, match=r"^samples is one Sample: pass a list, \[sample\]$"):
        check_samples(SAMPLE)


def test_samples_of_an_iterator_are_checked_when_their_turn_comes():
    taken = 0

    def found() -> Iterator[object]:
        nonlocal taken
        for one in (SAMPLE, SAMPLE, {}):
            taken += 1
            yield one

    samples = check_samples(found())
    assert [taken, next(samples), taken, next(samples)] == [0, SAMPLE, 1, SAMPLE]
    with pytest.raises(ConfigError, match=r"^samples\[2\] is of type dict: "):
        next(samples)
