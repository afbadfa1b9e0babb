"""Conversations of several agents with one decisive mistake."""

import pytest

from judgekit.errors import TraceError
from judgekit.formats.detect import detect
from judgekit.formats.readers.who_when import WhoWhenReader
from judgekit.traces.message import AIMessage, HumanMessage
from judgekit.traces.recording import Label, TraceWarning

READER = WhoWhenReader()
GENERATED = {
    "is_correct": False,
    "question": "How many awnings?",
    "question_ID": "4d51",
    "level": "2",
    "ground_truth": "8",
    "history": [
        {"content": "Count the rows", "role": "assistant", "name": "Excel_Expert"},
        {"content": "exitcode: 0", "name": "Computer_terminal", "role": "user"},
        {"content": "TERMINATE", "name": "Checker", "role": "user"},
    ],
    "mistake_agent": "Excel_Expert",
    "mistake_step": 0,
    "mistake_reason": "It missed half of them.",
    "system_prompt": {"Excel_Expert": "You know spreadsheets."},
}
CRAFTED = {
    "history": [
        {"content": "Where can I dance?\n", "role": "human"},
        {"content": "Initial plan", "role": "Orchestrator (thought)"},
        {"content": "Search", "role": "Orchestrator (-> WebSurfer)"},
        {"content": "I typed", "role": "WebSurfer"},
    ],
    "question": "Where can I dance?",
    "groundtruth": "At Mary's",
    "is_corrected": False,
    "question_ID": "6e3b",
    "mistake_agent": "WebSurfer",
    "mistake_step": "3",
    "mistake_reason": "It clicks.",
}


def test_every_speaker_but_the_human_is_an_agent():
    sample = READER.sample(CRAFTED, 0)
    assert (sample.id, sample.reference, sample.trace.warnings) == ("6e3b", "At Mary's", ())
    assert sample.trace.messages == (
        HumanMessage("Where can I dance?\n"),
        AIMessage("Initial plan", agent="Orchestrator", metadata={"role": "Orchestrator (thought)"}),
        AIMessage("Search", agent="Orchestrator", metadata={"role": "Orchestrator (-> WebSurfer)"}),
        AIMessage("I typed", agent="WebSurfer"),
    )
    assert sample.trace.labels == (
        Label("mistake_agent", "WebSurfer", source="human", reason="It clicks."),
        Label("mistake_step", 3, source="human"),
        Label("sound", value=False, source="human", reason="It clicks.", message=4),
    )
    assert sample.trace.extra == {"question": "Where can I dance?", "is_corrected": False}


@pytest.mark.parametrize(("truth", "reference"), [(8, "8"), (2.5, "2.5"), (None, None), ("", "")])
def test_the_true_answer_may_be_a_number(truth, reference):
    sample = READER.sample({**CRAFTED, "groundtruth": truth}, 0)
    assert (sample.reference, sample.trace.warnings) == (reference, ())
    unknown = READER.sample({**CRAFTED, "groundtruth": float("nan")}, 0)
    assert (unknown.reference, unknown.trace.warnings[0].path) == (None, "groundtruth")


def test_a_question_is_asked_whatever_blanks_stand_around_it():
    sample = READER.sample({**CRAFTED, "question": " Where can I dance?\n\n"}, 0)
    assert (len(sample.trace.messages), sample.trace.warnings) == (4, ())


def test_a_question_that_nobody_asks_stands_before_the_history():
    sample = READER.sample(GENERATED, 0)
    assert (sample.id, sample.reference) == ("4d51", "8")
    assert sample.trace.messages == (
        HumanMessage("How many awnings?"),
        AIMessage("Count the rows", agent="Excel_Expert", extra={"role": "assistant"}),
        AIMessage("exitcode: 0", agent="Computer_terminal", extra={"role": "user"}),
        AIMessage("TERMINATE", agent="Checker", extra={"role": "user"}),
    )
    assert [label.value for label in sample.trace.labels] == [False, "Excel_Expert", 0, False]
    assert sample.trace.warnings == (
        TraceWarning("not in any user message: placed before the history, whose step 0 is message 2", path="question"),
        TraceWarning("the instructions of each agent are kept in extra", path="system_prompt"),
    )
    assert sample.trace.extra == {"level": "2", "system_prompt": GENERATED["system_prompt"]}


def test_messages_whose_role_is_one_of_a_chat_are_read_as_such():
    call = {"id": "c", "function": {"name": "look", "arguments": "{}"}}
    history = [
        {"role": "user", "content": "How many awnings?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": "8", "tool_call_id": "c", "name": "look"},
        {"role": "human", "name": "Mary", "content": "Thanks"},
    ]
    trace = READER.sample({**GENERATED, "history": history}, 0).trace
    assert [message.role for message in trace.messages] == ["user", "assistant", "tool", "user"]
    assert [made.call.name for made in trace.tool_calls()] == ["look"]


@pytest.mark.parametrize("value", [GENERATED, CRAFTED, [CRAFTED], {"question_ID": "a", "history": CRAFTED["history"]}])
def test_its_files_are_recognized(value):
    assert detect(value).name == "who-when"


@pytest.mark.parametrize(
    ("message", "found"),
    [
        ({"content": ["x"], "role": "WebSurfer"}, r"history\[0\].content: expected a string"),
        ({"content": "x"}, r"history\[0\].role: expected an agent name"),
        ({"content": "x", "role": "WebSurfer", "name": 1}, r"history\[0\].role: expected an agent name"),
    ],
)
def test_a_message_without_speaker_or_text_is_an_error(message, found):
    with pytest.raises(TraceError, match=found):
        READER.sample({**CRAFTED, "history": [message]}, 0)


def test_nothing_is_forgotten_and_nothing_crashes(intact):
    intact(READER, GENERATED, CRAFTED)
