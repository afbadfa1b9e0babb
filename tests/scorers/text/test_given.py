"""What text scorers compare."""

import pytest

from judgekit.scorers.text.given import Given, given
from judgekit.traces.message import AIMessage, HumanMessage, ToolCall
from judgekit.traces.sample import Sample

HI = HumanMessage("Hi")


def test_the_last_message_of_the_agent_is_compared():
    messages = [HI, AIMessage("First"), HumanMessage("Go on"), AIMessage("Last"), HumanMessage("Thanks")]
    assert given(Sample.of(messages, reference="a")) == Given("Last", ("a",))


def test_a_last_message_that_only_calls_tools_is_an_empty_response():
    messages = [HI, AIMessage("First"), AIMessage(tool_calls=[ToolCall("search")])]
    assert given(Sample.of(messages, reference="a")) == Given("", ("a",))


@pytest.mark.parametrize(
    ("known", "references"),
    [
        ({"reference": "a"}, ("a",)),
        ({"references": ["b", "a"]}, ("b", "a")),
        ({"reference": "a", "references": ["b", "c"]}, ("a", "b", "c")),
        ({"reference": "a", "references": ["b", "a", "b"]}, ("a", "b")),
        ({"reference": " ", "references": ["", "b", "\n\t\u3000"]}, ("b",)),
        ({"reference": "a ", "references": ["a"]}, ("a ", "a")),
        ({"reference": "..."}, ("...",)),
    ],
)
def test_references_are_all_that_are_known_each_once_and_none_blank(known, references):
    assert given(Sample.of([HI, AIMessage("Yes")], **known)) == Given("Yes", references)


@pytest.mark.parametrize(
    ("known", "reason"),
    [
        ({}, "the sample has no reference"),
        ({"references": []}, "the sample has no reference"),
        ({"reference": ""}, "the reference is empty"),
        ({"reference": " ", "references": ["", "\n"]}, "the reference is empty"),
    ],
)
def test_without_a_reference_it_says_why_nothing_is_compared(known, reason):
    assert given(Sample.of([HI, AIMessage("Yes")], **known)) == reason


@pytest.mark.parametrize("messages", [[], [HI]])
def test_without_a_message_of_the_agent_it_says_so(messages):
    reason = "the sample has no response: there is no message of the agent"
    assert given(Sample.of(messages, id="one", reference="a")) == reason
