"""Merging of many spans into one conversation."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.merging import SpanStep, merge_steps
from judgekit.formats.spans import read_spans
from judgekit.traces.message import AIMessage, HumanMessage, Message, SystemMessage, ToolCall, ToolMessage
from judgekit.traces.recording import TraceWarning
from judgekit.traces.trace import Trace

S, U, U2 = SystemMessage("Be brief"), HumanMessage("Weather?"), HumanMessage("And tomorrow?")
CALL = ToolCall("f", {"city": "Paris"}, id="c1")
A, R, DONE, DONE2 = (
    AIMessage(tool_calls=[CALL]),
    ToolMessage("12C", tool_call_id="c1"),
    AIMessage("12C"),
    AIMessage("13C"),
)
OK = HumanMessage("ok")


def model(*asked: Message, to: Message | None = None, **fields: object) -> dict:
    return {"kind": "model", "input_messages": asked, "output_messages": () if to is None else [to], **fields}


def tool(call: ToolCall | None = CALL, result: str | None = None, **fields: object) -> dict:
    return {"kind": "tool", "call": call, "result": None if result is None else ToolMessage(result), **fields}


def agent(name: str, **fields: object) -> dict:
    return {"kind": "agent", "agent": name, **fields}


def trace(*described: dict, warnings: list | None = None) -> Trace:
    """Return the trace of steps, each starting a second after the one before; ``under`` is the index of the parent."""
    rows: list[dict] = []
    for number, step in enumerate(described):
        lasts = step.pop("lasts", 1)
        under = step.pop("under", None)
        error = {"error.type": step.pop("error")} if "error" in step else {}
        rows.append(
            {
                "trace_id": step.pop("trace_id", "t"),
                "span_id": f"s{number}",
                "parent_span_id": None if under is None else f"s{under}",
                "start_time": 1_767_225_600 + number,
                "end_time": 1_767_225_600 + number + lasts,
                "attributes": error,
            }
        )
    spans = read_spans(FieldTracker({"spans": rows}, warnings=warnings))
    return Trace.model_validate(
        merge_steps([SpanStep(span, **step) for span, step in zip(spans, described, strict=True)])
    )


def said(messages: Sequence[Message]) -> list[str]:
    """Return a short form of who says what."""
    return [
        f"{one.role[0]}:{one.text or ','.join(call.name for call in getattr(one, 'tool_calls', ()))}"
        for one in messages
    ]


def test_what_goes_another_way_is_a_child_and_the_longest_is_the_trace() -> None:
    made = trace(model(U, to=DONE2), model(U, to=A), model(U, A, R, to=DONE))
    assert said(made.messages) == said([U, A, R, DONE])
    assert [said(child.messages) for child in made.children] == [said([U, DONE2])]


def test_other_instructions_are_another_conversation() -> None:
    made = trace(
        model(SystemMessage("Find a title"), U, to=AIMessage("Weather")), model(S, U, to=A), model(S, U, A, R, to=DONE)
    )
    assert said(made.messages) == said([S, U, A, R, DONE])
    assert [said(child.messages) for child in made.children] == [["s:Find a title", "u:Weather?", "a:Weather"]]


def test_a_repeated_message_that_says_more_is_kept_once() -> None:
    again = A.model_copy(update={"tool_calls": (CALL.model_copy(update={"id": "fc_9"}),)})
    made = trace(model(U, to=A), model(U, again, R, to=DONE), model(U, again, R, DONE, U2, to=DONE2))
    assert said(made.messages) == said([U, A, R, DONE, U2, DONE2])
    assert made.metadata == {"variants": [{"tool_calls": [{"name": "f", "args": {"city": "Paris"}, "id": "fc_9"}]}]}


def test_spaces_do_not_make_another_message() -> None:
    made = trace(model(U, to=DONE), model(U, AIMessage(" 12C\n"), U2, to=DONE2))
    assert said(made.messages) == said([U, DONE, U2, DONE2])
    assert made.metadata == {"variants": [{"content": " 12C\n"}]}


def test_an_agent_that_takes_over_goes_on_with_the_conversation() -> None:
    handed = SystemMessage("You do billing")
    made = trace(
        agent("triage"), model(S, U, to=A, under=0), agent("billing"), model(handed, U, A, R, to=DONE, under=2)
    )
    assert said(made.messages) == ["s:Be brief", "u:Weather?", "a:f", "t:12C", "s:You do billing", "a:12C"]
    assert [one.agent for one in made.messages if isinstance(one, AIMessage)] == ["triage", "billing"]


INNER = (model(SystemMessage("Search"), HumanMessage("Paris"), to=AIMessage("found")),)


@pytest.mark.parametrize(
    ("steps", "call_id"),
    {
        "within the call": ([tool(result="12C", under=0), agent("inner", under=2), {**INNER[0], "under": 3}], "c1"),
        "no agent of its own": ([tool(result="12C", under=0), {**INNER[0], "under": 2}], "c1"),
        "during the call": ([tool(result="12C", under=0, lasts=3), agent("inner"), {**INNER[0], "under": 3}], "c1"),
        "within the agent": ([agent("inner", under=0), {**INNER[0], "under": 2}], None),
    }.values(),
)
def test_an_agent_within_a_call_or_another_agent_is_a_child(steps: list, call_id: str | None) -> None:
    steps = [agent("outer", lasts=9), model(U, to=A, under=0), *(dict(step) for step in steps)]
    made = trace(*steps, model(U, A, R, to=DONE, under=0))
    assert said(made.messages) == said([U, A, R, DONE])
    (child,) = made.children
    assert said(child.messages) == ["s:Search", "u:Paris", "a:found"]
    assert child.metadata == ({} if call_id is None else {"call_id": call_id})


def test_two_calls_at_once_do_not_say_whose_agent_it_was() -> None:
    other = ToolCall("g", id="c2")
    both = AIMessage(tool_calls=[CALL, other])
    steps = [model(U, to=both, under=0), tool(lasts=5, under=0), tool(other, lasts=5, under=0), agent("inner")]
    made = trace(agent("outer", lasts=9), *steps, {**INNER[0], "under": 4})
    assert [(len(child.messages), child.metadata) for child in made.children] == [(3, {})]


def test_an_agent_of_another_trace_did_not_run_within_a_call_that_lasted_at_that_time() -> None:
    calling = [agent("outer", lasts=9), model(U, to=A, under=0), tool(result="12C", under=0, lasts=3)]
    made = trace(*calling, agent("other", trace_id="u"), {**INNER[0], "under": 3, "trace_id": "u"})
    assert [child.metadata for child in made.children if len(child.messages) == 3] == [{}]


def test_a_message_that_names_its_agent_is_of_that_one_and_not_of_the_agent_around_it() -> None:
    made = trace(agent("team"), model(U, to=AIMessage("12C", agent="writer"), under=0))
    assert made.messages[-1] == AIMessage("12C", agent="writer", timestamp=made.messages[-1].timestamp)


def test_arguments_in_another_order_are_the_same_call() -> None:
    first, again = (AIMessage(tool_calls=[ToolCall("f", args)]) for args in ({"a": 1, "b": 2}, {"b": 2, "a": 1}))
    made = trace(model(U, to=first), model(U, again, ToolMessage("x"), to=DONE))
    assert said(made.messages) == ["u:Weather?", "a:f", "t:x", "a:12C"]
    assert made.children == ()


def test_an_outer_agent_that_says_nothing_gives_its_place_to_the_inner_one() -> None:
    made = trace(agent("wrapper"), agent("inner", under=0), model(U, to=DONE, under=1))
    assert said(made.messages) == said([U, DONE])
    assert made.children == ()


def test_agents_within_agents_go_on_with_the_conversation_that_they_are_given() -> None:
    made = trace(
        agent("graph", lasts=9),
        agent("agent", under=0),
        model(U, to=A, under=1),
        tool(result="12C", under=0),
        agent("agent", under=0),
        model(U, A, R, to=DONE, under=4),
    )
    assert said(made.messages) == said([U, A, R, DONE])
    assert made.children == ()


def test_spans_of_tools_add_results_and_errors_that_messages_lack() -> None:
    calls = [ToolCall("f", {"n": n}, id=identity) for n, identity in enumerate(("c1", None, "c3"))]
    known = ToolMessage("Error: late", tool_call_id="c3")
    made = trace(
        model(U, to=AIMessage(tool_calls=calls)),
        tool(ToolCall("f", {"n": 1}), "one"),  # ends first
        tool(ToolCall("f", id="c1"), None, error="Timeout"),
        tool(ToolCall("f", {"n": 2}, id="c3"), None, error="late"),
        model(U, AIMessage(tool_calls=calls), known, to=DONE),
    )
    results = [one for one in made.messages if isinstance(one, ToolMessage)]
    assert [(one.text, one.tool_call_id, one.is_error) for one in results] == [
        ("one", None, None),
        ("Timeout", "c1", True),
        ("Error: late", "c3", True),
    ]


def test_a_call_that_no_message_makes_stands_where_it_happened() -> None:
    made = trace(model(U, to=DONE), tool(ToolCall("log"), "written"), model(U, DONE, U2, to=DONE2))
    assert said(made.messages) == ["u:Weather?", "a:12C", "t:written", "u:And tomorrow?", "a:13C"]
    assert [call.name for one in made.messages if isinstance(one, AIMessage) for call in one.tool_calls] == ["log"]


def test_a_call_before_all_answers_stands_before_the_first_one() -> None:
    made = trace(tool(ToolCall("log"), "written"), model(S, U, to=DONE), tool(ToolCall("end"), "too"))
    assert said(made.messages) == ["s:Be brief", "u:Weather?", "a:log", "t:written", "a:12C", "t:too"]
    assert [one.call.name for one in made.tool_calls()] == ["log", "end"]
    assert made.metadata == {}


def test_calls_at_the_same_time_are_not_one_conversation() -> None:
    made = trace(model(U, to=DONE, lasts=3), model(U2, to=DONE2), model(OK, to=A, lasts=9))
    assert said(made.messages) == said([U2, DONE2, OK, A])
    assert [said(child.messages) for child in made.children] == [said([U, DONE])]


POLL = [AIMessage(tool_calls=[ToolCall("poll", id=f"c{n}")]) for n in range(3)]
WAIT = [ToolMessage("pending", tool_call_id=f"c{n}") for n in range(3)]


@pytest.mark.parametrize(
    ("steps", "expected", "warned"),
    {
        "the same call with another id": (
            [model(U, to=POLL[0]), *(model(U, POLL[n], WAIT[n], to=POLL[n + 1]) for n in range(2))],
            [U, POLL[0], WAIT[0], POLL[1], WAIT[1], POLL[2]],
            None,
        ),
        "said again": ([model(U, to=DONE), model(OK, to=DONE2), model(U, to=DONE)], [U, DONE, OK, DONE2], 1),
        "one tracer within another": ([model(U, to=DONE), model(U, to=DONE, under=0)], [U, DONE], None),
    }.values(),
)
def test_what_may_be_a_repetition_is_told(steps: list, expected: list[Message], warned: int | None) -> None:
    warnings: list = []
    made = trace(*steps, warnings=warnings)
    assert said(made.messages) == said(expected)
    assert made.children == ()
    told = [one.message for one in warnings if "repeat an earlier one" in one.message]
    assert [one.rpartition(", found ")[2] for one in told] == ([] if warned is None else [str(warned)])


def test_a_span_that_says_the_call_did_not_fail_says_it_of_the_result() -> None:
    step = tool(result="12C") | {"result": ToolMessage("12C", is_error=False)}
    made = trace(model(U, to=A), step, model(U, A, R, to=DONE))
    assert [one.is_error for one in made.messages if isinstance(one, ToolMessage)] == [False]


def test_a_span_that_ended_well_does_not_hide_an_error_that_the_messages_tell() -> None:
    failed = ToolMessage("12C", tool_call_id="c1", is_error=True)
    made = trace(
        model(U, to=A), tool() | {"result": failed.model_copy(update={"is_error": False})}, model(U, A, failed, to=DONE)
    )
    assert [one.is_error for one in made.messages if isinstance(one, ToolMessage)] == [True]


def test_a_call_that_one_span_is_about_is_not_that_of_another_which_does_not_say_its_id() -> None:
    calls = [ToolCall("f", {"n": 1}, id=identity) for identity in ("c1", "c2")]
    made = trace(model(U, to=AIMessage(tool_calls=calls)), tool(calls[0], "one"), tool(ToolCall("f", {"n": 1}), "two"))
    results = [(one.text, one.tool_call_id) for one in made.messages if isinstance(one, ToolMessage)]
    assert results == [("one", "c1"), ("two", "c2")]


def test_an_id_that_is_used_twice_names_the_calls_in_their_order() -> None:
    first, second = (AIMessage(tool_calls=[ToolCall("f", {"n": n}, id="c")]) for n in (1, 2))
    answer = ToolMessage("1", tool_call_id="c")
    made = trace(
        model(U, to=first),
        tool(ToolCall("f", id="c"), "1"),
        model(U, first, answer, to=second),
        tool(ToolCall("f", id="c"), "2"),
    )
    assert said(made.messages) == ["u:Weather?", "a:f", "t:1", "a:f", "t:2"]


def test_without_calls_of_models_tools_make_the_conversation_of_their_agent() -> None:
    made = trace(
        agent("helper", input_messages=[U], output_messages=[DONE]),
        tool(result="12C", under=0),
        tool(ToolCall("g"), error="boom", under=0),
        agent("helper", input_messages=[U2], output_messages=[DONE2]),
    )
    assert said(made.messages) == ["u:Weather?", "a:f", "t:12C", "a:g", "t:boom", "a:12C", "u:And tomorrow?", "a:13C"]
    assert [one.is_error for one in made.messages if isinstance(one, ToolMessage)] == [None, True]


def test_an_agent_s_own_messages_are_not_said_again() -> None:
    made = trace(
        agent("helper", input_messages=[U], output_messages=[DONE], lasts=9),
        model(U, to=A, under=0),
        model(U, A, R, to=DONE, under=0),
    )
    assert said(made.messages) == said([U, A, R, DONE])
    assert (made.children, made.metadata) == ((), {})


texts = st.lists(st.sampled_from("abc"), min_size=1, max_size=6)


@given(texts, st.integers(1, 4))
def test_any_conversation_is_got_back_from_calls_that_repeat_it(words: list[str], every: int) -> None:
    """This holds even with few distinct words, and with any number of messages between two answers."""
    messages: list[Message] = []
    steps: list[dict] = []
    for number, word in enumerate(words):
        messages += [HumanMessage(f"{word} {n}") for n in range(every)]
        answer = AIMessage(f"{word}{number % 2}")
        steps.append(model(*messages, to=answer))
        messages.append(answer)
    assert said(trace(*steps).messages) == said(messages)


def test_calls_that_have_nothing_in_common_are_told():
    warnings: list[TraceWarning] = []
    made = trace(model(U, to=DONE), model(U2, to=DONE2), warnings=warnings)
    assert said(made.messages) == ["u:Weather?", "a:12C", "u:And tomorrow?", "a:13C"]
    assert [one.message.split(":")[0] for one in warnings] == [
        "model calls that repeat none of the earlier messages, found 1"
    ]
    warnings.clear()
    trace(model(U, to=A), model(U, A, R, to=DONE), model(R, to=DONE2), warnings=warnings)
    assert warnings == []


AGENT, WITHIN = agent("helper", lasts=30), {"under": 0}
RAN, RAN2 = tool(result="12C", **WITHIN), tool(ToolCall("g", id="c2"), "rain", **WITHIN)
B, D3 = AIMessage(tool_calls=[ToolCall("g", id="c2")]), AIMessage("It rains")
ASKED, ANSWERED = ["u:Weather?", "a:f", "t:12C"], ["u:Weather?", "a:f", "t:12C", "a:12C"]


def test_calls_that_record_only_what_was_asked_are_separate_attempts_with_a_warning() -> None:
    cases = (
        [model(U, to=A, **WITHIN), RAN, model(U, to=DONE, **WITHIN)],
        [model(S, U, to=A, **WITHIN), RAN, model(S, U, to=DONE, **WITHIN)],
        [model(S, U, to=A, **WITHIN), RAN, model(U, to=DONE, **WITHIN)],
        [model(U, to=A, **WITHIN), RAN, model(U, to=B, **WITHIN), RAN2, model(U, to=DONE, **WITHIN)],
        [model(U, to=A, **WITHIN), RAN, model(U, R, to=DONE, **WITHIN)],
        [model(U, to=AIMessage("Action: f"), **WITHIN), RAN, model(U, to=DONE, **WITHIN)],
        [model(U, to=A), tool(result="12C"), model(U, to=DONE)],
        [model(U, to=A, **WITHIN), RAN, model(U, **WITHIN), model(U, to=DONE, **WITHIN)],
        [
            *(model(U, DONE, U2, to=B, **WITHIN), RAN2),
            *(model(U, DONE, U2, to=D3, **WITHIN), agent("helper", lasts=9)),
        ],
    )
    for steps in cases:
        warnings: list[TraceWarning] = []
        made = trace(*(dict(step) for step in (AGENT, *steps)), warnings=warnings)
        words = {word for one in (made, *made.children) for word in said(one.messages)}
        answers = [answer for step in steps for answer in step.get("output_messages", ())]
        results = [step["result"] for step in steps if step.get("result") is not None]
        assert words >= {*said(answers), *said(results)}
        assert len(made.children) > 0
        assert [one.message.partition(";")[0] for one in warnings] == [AGAIN]


def test_results_without_the_question_continue_the_conversation() -> None:
    made = trace(dict(AGENT), model(U, to=A, **WITHIN), dict(RAN), model(R, to=DONE, **WITHIN))
    assert (said(made.messages), made.children) == (ANSWERED, ())


AGAIN = "model calls that begin with an earlier question and lack the last answer"
TITLE = SystemMessage("Find a title")


def test_calls_that_may_or_may_not_follow_one_another_are_told() -> None:
    cases = {
        "asked twice": (
            [model(U, to=DONE, **WITHIN), model(U, to=DONE2, **WITHIN)],
            ["u:Weather?", "a:13C"],
            [["u:Weather?", "a:12C"]],
            [AGAIN],
        ),
        "other instructions after a tool": (
            [model(S, U, to=A, **WITHIN), RAN, model(TITLE, U, to=DONE, **WITHIN)],
            ["s:Be brief", *ASKED],
            [["s:Find a title", "u:Weather?", "a:12C"]],
            [AGAIN],
        ),
        "another agent after a call": (
            [
                *(model(S, U, to=A, **WITHIN), agent("billing", lasts=9)),
                *(model(TITLE, U, to=B, under=2), model(TITLE, U, B, R, to=DONE, under=2)),
            ],
            ["s:Find a title", "u:Weather?", "a:g", "t:12C", "a:12C"],
            [["s:Be brief", "u:Weather?", "a:f"]],
            [AGAIN],
        ),
        "another message after the same one": (
            [model(U, U2, to=DONE, **WITHIN), model(U, OK, to=DONE2, **WITHIN)],
            ["u:Weather?", "u:ok", "a:13C"],
            [["u:Weather?", "u:And tomorrow?", "a:12C"]],
            [AGAIN],
        ),
        "the answer of another agent": (
            [model(U, to=A, **WITHIN), RAN, model(U, D3, to=DONE, **WITHIN)],
            ["u:Weather?", "a:It rains", "a:12C"],
            [ASKED],
            [AGAIN],
        ),
        "another question under other instructions": (
            [model(S, U, to=A, **WITHIN), RAN, model(TITLE, U2, to=DONE, **WITHIN)],
            ["s:Be brief", *ASKED],
            [["s:Find a title", "u:And tomorrow?", "a:12C"]],
            [],
        ),
        "at the same time": (
            [model(U, to=A, lasts=5, **WITHIN), model(U, to=B, lasts=5, **WITHIN)],
            ["u:Weather?", "a:g"],
            [["u:Weather?", "a:f"]],
            [],
        ),
    }.values()
    for steps, expected, children, told in cases:
        warnings: list[TraceWarning] = []
        made = trace(*(dict(step) for step in (AGENT, *steps)), warnings=warnings)
        assert said(made.messages) == expected
        assert [said(child.messages) for child in made.children] == children
        assert [one.message.partition(";")[0] for one in warnings] == told


def test_calls_of_a_model_that_repeat_their_history_are_one_conversation() -> None:
    cases = {
            "history that grows": (
                [model(S, U, to=A), model(S, U, A, R, to=DONE), model(S, U, A, R, DONE, U2, to=DONE2)],
                [S, U, A, R, DONE, U2, DONE2],
            ),
            "history that is cut": ([model(U, to=DONE), model(U, DONE, U2, to=DONE2), model(DONE2, OK, to=A)], [U, DONE, U2, DONE2, OK, A]),
            "no history": ([model(S, U, to=DONE), model(S, U2, to=DONE2)], [S, U, DONE, U2, DONE2]),
            "no history and instructions once": ([model(S, U, to=DONE), model(U2, to=DONE2)], [S, U, DONE, U2, DONE2]),
            "the same call twice": ([model(U, to=DONE), model(U, to=DONE)], [U, DONE]),
            "a call that failed": ([model(S, U), model(S, U, to=DONE)], [S, U, DONE]),
            "no answer at all": ([model(S, U)], [S, U]),
            "history divided in another way": (
                [
                    model(U, to=AIMessage("Let me see", tool_calls=[CALL])),
                    model(U, AIMessage("Let me see"), A, R, to=DONE),
                ],
                [U, AIMessage("Let me see", tool_calls=[CALL]), R, DONE],
            ),
            "instructions in the middle": (
                [model(U, to=DONE), model(U, DONE, S, U2, to=DONE2), model(U, DONE, S, U2, DONE2, OK, to=A)],
                [U, DONE, S, U2, DONE2, OK, A],
            ),
            "repeats": ([model(OK, to=DONE), model(OK, DONE, OK, to=DONE), model(OK, DONE, OK, DONE, OK, to=A)], [OK, DONE, OK, DONE, OK, A]),
        }.values()  # fmt: skip
    for steps, expected in cases:
        made = trace(*steps)
        assert said(made.messages) == said(expected)
        assert made.children == ()
        assert made.metadata == {}
