"""What Python code gives as samples."""

from collections.abc import Iterator
from io import StringIO

import pytest

from judgekit.errors import ConfigError
from judgekit.scorers.tool_calls.f1 import ToolCallF1
from judgekit.traces.message import AIMessage, HumanMessage
from judgekit.traces.sample import Sample
from judgekit.traces.validation import check_sample, check_samples

MESSAGES = [HumanMessage("Hi"), AIMessage("Hello")]
SAMPLE = Sample.of(MESSAGES)
CONVERSATION = "Sample.of([HumanMessage(...), AIMessage(...)])"
OTHERS = {
    "a trace": (SAMPLE.trace, 'a Trace: wrap it in a sample, Sample(id="...", trace=trace)'),
    "a message": (MESSAGES[0], f"a HumanMessage: a sample is a whole conversation, {CONVERSATION}"),
    "a row": (
        {"input": "Hi"},
        f"a dict: build a sample from it, {CONVERSATION}, or write such rows to a .jsonl file and pass its path",
    ),
    "an open file": (StringIO("{}"), "a StringIO: pass the path of the file"),
    "nothing": (None, f"None: read samples from a file, or build them with {CONVERSATION}"),
}
WITHIN = {
    **OTHERS,
    "messages": (
        MESSAGES,
        "a list: if it is the messages of a conversation, build a sample from them, Sample.of(messages)",
    ),
    "a path": ("a.jsonl", "'a.jsonl': pass a path on its own; a folder or a pattern reads many files"),
    "a scorer": (ToolCallF1(), "a ToolCallF1: the scorers come after the samples, run(samples, scorers)"),
}


def test_what_is_no_collection_of_samples_says_what_to_write():
    for found, told in OTHERS.values():
        with pytest.raises(ConfigError) as caught:
            check_samples(found)
        assert str(caught.value).startswith(f"samples is {told}")


def test_a_table_is_to_be_written_to_a_file():
    table = pytest.importorskip("pandas").DataFrame({"input": ["Hi"]})
    for found, place in ((table, "samples"), ([SAMPLE, table], "samples[1]")):
        with pytest.raises(ConfigError) as caught:
            check_samples(found)
        told = f"{place} is a DataFrame: write it to a .csv or .parquet file and pass"
        assert str(caught.value).startswith(told)


def test_what_is_no_sample_is_named_by_its_place_before_any_sample_of_a_list_is_given():
    for found, told in WITHIN.values():
        with pytest.raises(ConfigError) as caught:
            check_samples([SAMPLE, found])
        assert str(caught.value).startswith(f"samples[1] is {told}")
        with pytest.raises(ConfigError) as caught:
            check_sample(found, "this")
        assert str(caught.value).startswith(f"this is {told}")


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
    with pytest.raises(ConfigError, match=r"^samples\[2\] is a dict: "):
        next(samples)
