"""Writing samples, and reporting what a format cannot hold."""

import json
import re
from contextlib import suppress
from itertools import islice
from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from judgekit import AIMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage, Usage
from judgekit.errors import ConfigError, TraceError
from judgekit.formats.detect import detect
from judgekit.formats.reading import read
from judgekit.formats.unread import silence
from judgekit.formats.writing import write
from judgekit.traces.message import MediaPart, RefusalPart, TextPart
from judgekit.traces.pairing import pair_results
from judgekit.traces.sample import Sample
from judgekit.traces.trace import Trace

SAMPLE = Sample(
    id="a",
    trace=Trace(
        id="a",
        messages=[
            SystemMessage("Be brief"),
            HumanMessage("Weather?", name="ann"),
            AIMessage(
                tool_calls=[ToolCall("weather", {"city": "Paris"}, id="1")], model="m", usage=Usage(input_tokens=5)
            ),
            ToolMessage("12 C", tool_call_id="1", is_error=False),
            AIMessage("It is 12 C."),
        ],
        termination="done",
    ),
    reference="12 C",
    reference_tool_calls=[ToolCall("weather", {"city": "Paris"})],
    label="good",
)
MISSING = {
    "judgekit": {},
    "openai-chat": {"assistant: model": 1, "assistant: usage": 1, "tool: is_error": 1, "trace: termination": 1},
    "ragas": {
        "system messages": 1,
        "system: text": 1,
        "user: name": 1,
        "assistant: model": 1,
        "assistant: usage": 1,
        "assistant: tool_calls.id": 1,
        "tool: tool_call_id": 1,
        "tool: is_error": 1,
        "trace: termination": 1,
        "id": 1,
        "label": 1,
    },
}


@pytest.mark.parametrize("format_name", MISSING)
def test_what_a_format_has_no_place_for_is_counted_by_kind(tmp_path, format_name):
    path = tmp_path / "a.jsonl"
    twice = {kind: 2 * times for kind, times in MISSING[format_name].items()}
    assert write([SAMPLE, SAMPLE], path, format_name) == twice
    found = list(read(path, on_error="raise"))
    messages = [one for one in SAMPLE.trace.messages if format_name != "ragas" or one.role != "system"]
    for back in found:
        assert [(one.role, one.text) for one in back.trace.messages] == [(one.role, one.text) for one in messages]
        assert [made.call.args for made in back.trace.tool_calls()] == [{"city": "Paris"}]
        assert (back.reference, back.reference_tool_calls) == (SAMPLE.reference, SAMPLE.reference_tool_calls)
    assert [one.id for one in found] == (["0", "1"] if format_name == "ragas" else ["a", "a"])
    if format_name == "judgekit":
        assert found == [SAMPLE] * 2


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.JSONL.ZST"])
def test_a_file_is_packed_as_its_name_says(tmp_path, name):
    path = tmp_path / name
    write([SAMPLE], path)
    assert list(read(path)) == [SAMPLE]
    assert (b"12 C" in path.read_bytes()) is (name == "a.jsonl")


@pytest.mark.parametrize("name", ["a.csv", "a.parquet.gz", "a.html"])
def test_a_file_that_would_be_read_as_another_kind_is_not_written(tmp_path, name):
    path = tmp_path / name
    with pytest.raises(
        ConfigError, match=rf"{re.escape(name)}: would be written as JSON Lines, so its name must end in "
    ):
        write([SAMPLE], path)
    assert not path.exists()


def test_standard_output_is_a_line(capsysbinary):
    assert write([SAMPLE], "-") == {}
    [line, rest] = capsysbinary.readouterr().out.split(b"\n")
    assert (Sample.model_validate_json(line), rest) == (SAMPLE, b"")


def test_our_own_format_leaves_out_defaults_but_not_what_tells_kinds(tmp_path):
    inner = Trace(messages=[HumanMessage([TextPart("Hi"), RefusalPart("No", extra={"a": None})])])
    sample = Sample(id="a", trace=Trace(messages=[SystemMessage(), AIMessage(())], children=[inner]), baseline=Trace())
    path = tmp_path / "a.jsonl"
    write([sample, Sample(id="b")], path)
    parts = [{"type": "text", "text": "Hi"}, {"type": "refusal", "text": "No", "extra": {"a": None}}]
    children = [{"schema_version": 1, "messages": [{"role": "user", "content": parts}]}]
    messages = [{"role": "system"}, {"role": "assistant", "content": []}]
    assert list(map(json.loads, path.read_text().splitlines())) == [
        {
            "schema_version": 1,
            "id": "a",
            "trace": {"schema_version": 1, "messages": messages, "children": children},
            "baseline": {"schema_version": 1},
        },
        {"schema_version": 1, "id": "b", "trace": {"schema_version": 1}},
    ]
    assert list(read(path)) == [sample, Sample(id="b")]


def test_nothing_is_touched_before_there_is_something_to_write(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("older")

    def broken():
        raise TraceError("x")
        yield

    with pytest.raises(TraceError):
        write(broken(), path)
    with pytest.raises(
        ConfigError, match=r"^no format to write is called 'tau2'. Known: judgekit, openai-chat, ragas$"
    ):
        write([SAMPLE], path, "tau2")
    assert path.read_text() == "older"


def test_a_sample_that_a_format_cannot_hold_is_left_out_and_counted(tmp_path):
    path = tmp_path / "a.jsonl"
    assert write([Sample(id="empty"), SAMPLE], path, "openai-chat")["samples"] == 1
    assert [one.id for one in read(path)] == ["a"]


def calls(sample: Sample, side: str, field: str) -> list[object]:
    made = sample.without_sub_agents().trace.tool_calls(side)
    return [getattr(one.call, field) for one in made]


def texts(sample: Sample, role: str) -> list[str]:
    return [one.text for one in sample.trace.messages if one.role == role and one.text]


def said(value: object) -> list[object]:
    """Return the value without empty texts, which may be empty or missing."""
    return [one for one in (value if isinstance(value, list | tuple) else [value]) if one not in ("", None)]


KINDS = {
    **{f"{role}: text": lambda one, role=role: texts(one, role) for role in ("user", "assistant", "tool", "system")},
    **{
        f"{role}: tool_calls.{field}": lambda one, role=role, field=field: calls(one, role, field)
        for role in ("user", "assistant")
        for field in ("name", "args", "id")
    },
    **{
        name: lambda one, name=name: getattr(one, name)
        for name in ("reference", "references", "reference_topics", "label", "documents", "group", "domain")
    },
    "reference_tool_calls.name": lambda one: [call.name for call in one.reference_tool_calls or ()],
    "reference_tool_calls.args": lambda one: [call.args for call in one.reference_tool_calls or ()],
    "trace: tools.name": lambda one: [tool.name for tool in one.trace.tools],
    "user messages": lambda one: sum(message.role == "user" for message in one.trace.messages),
}
CORE = {
    "openai-chat": {*KINDS},
    "ragas": {
        *("user: text", "assistant: text", "assistant: tool_calls.name", "assistant: tool_calls.args", "reference"),
        *("reference_topics", "reference_tool_calls.name", "reference_tool_calls.args", "user messages"),
    },
}


def loads_in_ragas(row: dict) -> bool:
    """Check what ragas 0.4.3 requires of a ``MultiTurnSample``."""
    before = None
    for message in row["user_input"]:
        if message["type"] not in ("human", "ai", "tool") or not isinstance(message["content"], str):
            return False
        if message["type"] == "tool" and not (before and (before["type"] == "tool" or before.get("tool_calls"))):
            return False
        before = message
    made = [call for message in row["user_input"] for call in message.get("tool_calls", ())]
    return all(isinstance(call["args"], dict) for call in (*made, *row.get("reference_tool_calls", ())))


@pytest.mark.parametrize("format_name", CORE)
@settings(max_examples=settings.default.max_examples // 2)
@given(sample=st.from_type(Sample))
def test_a_sample_that_is_written_and_read_is_the_same_but_for_what_was_told(tmp_path_factory, format_name, sample):
    path = tmp_path_factory.getbasetemp() / f"{format_name}.jsonl"
    assume(silence(sample, format_name) is None)  # else it is refused when it is read
    missing = write([sample], path, format_name)
    if "samples" in missing:
        spoken = [message for message in sample.trace.messages if message.role in ("user", "assistant")]
        assert not any(message.text or (message.role == "assistant" and message.tool_calls) for message in spoken)
        return
    [back] = read(path, format_name, on_error="raise")
    for kind, get in KINDS.items():
        if kind.endswith(".id") and "calls without an id" in missing:
            continue  # a call without an id gets one
        if not kind.startswith(tuple(missing)):
            assert said(get(back)) == said(get(sample)), kind
        else:
            assert kind not in CORE[format_name]
    if format_name == "ragas":
        assert loads_in_ragas(json.loads(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize(("text", "refusal"), [("", ""), ("a", ""), ("", "b"), ("a", "b")])
def test_empty_texts_beside_refusals_are_kept(tmp_path, text, refusal):
    given = Sample.of([HumanMessage("Hi"), AIMessage([TextPart(text), RefusalPart(refusal)])], id="0")
    assert write([given], tmp_path / "a.jsonl", "openai-chat") == {}
    [back] = read(tmp_path / "a.jsonl", "openai-chat", on_error="raise")
    assert back.trace.messages == given.trace.messages


HOSTILE = Trace(
    messages=[AIMessage("x", extra={"tool_calls": [{"name": "f"}], "role": "user", "refusal": "no", "kept": 1})],
    extra={"messages": [], "reference": "forged", "choices": [{"message": {"role": "assistant", "content": "y"}}]},
)


def test_what_no_field_has_is_left_out_and_told(tmp_path):
    path = tmp_path / "a.jsonl"
    missing = write([Sample(id="a", trace=HOSTILE)], path, "openai-chat")
    assert missing == {"assistant: extra": 5, "trace: extra": 4}
    [back] = read(path, on_error="raise")
    assert back.trace.messages == (AIMessage("x"),)
    assert back.reference is None


A, B, C = (ToolCall(name, id=name) for name in "abc")


def result(name: str) -> ToolMessage:
    return ToolMessage(f"of {name}", tool_call_id=name)


def test_in_ragas_a_result_stands_in_the_place_of_its_call_or_is_left_out_and_counted(tmp_path):
    cases = [
        ([AIMessage(tool_calls=[A, B]), result("b"), result("a")], ["of a", "of b"]),
        ([AIMessage(tool_calls=[A, B]), result("b")], []),
        ([AIMessage(tool_calls=[A, B]), result("a"), SystemMessage("s"), result("b")], ["of a", "of b"]),
        ([AIMessage(tool_calls=[A]), SystemMessage("s"), AIMessage(tool_calls=[B]), result("b")], []),
        ([AIMessage(tool_calls=[A, B]), result("x"), result("a")], ["of a"]),
        (
            [AIMessage(tool_calls=[A, B]), result("a"), AIMessage(tool_calls=[C]), result("b"), result("c")],
            ["of a", "of c"],
        ),
        ([AIMessage(tool_calls=[A]), AIMessage("Wait"), result("a")], []),
        ([AIMessage(tool_calls=[A]), HumanMessage("Well?"), result("a")], []),
    ]
    for messages, results in cases:
        path = tmp_path / "a.jsonl"
        missing = write([Sample(id="a", trace=Trace(messages=messages))], path, "ragas")
        [back] = read(path, on_error="raise")
        found = back.trace.messages
        answers = {found[index].text: caller.call.name for index, caller in pair_results(found).calls.items()}
        assert answers == {text: text.removeprefix("of ") for text in results}
        assert [one.text for one in found if one.role == "tool"] == results
        lost = sum(one.role == "tool" and one.text != "of x" for one in messages) - len(results)
        assert missing.get("tool: pairing", 0) == lost
        assert loads_in_ragas(json.loads(path.read_text()))


def test_a_conversation_of_which_nothing_is_left_is_not_written(tmp_path):
    path = tmp_path / "a.jsonl"
    messages = [HumanMessage("", tool_calls=[A])]  # ragas has no calls of the user
    samples = [
        Sample(id=name, trace=Trace(messages=kept)) for name, kept in (("a", messages), ("b", [HumanMessage("b")]))
    ]
    assert write(samples, path, "ragas")["samples"] == 1
    [back] = read(path, on_error="raise")
    assert back.trace.messages[0].text == "b"


def test_for_openai_calls_and_results_without_ids_get_them_by_their_pairs(tmp_path):
    path = tmp_path / "a.jsonl"
    messages = [
        ToolMessage("of nothing"),
        AIMessage(
            tool_calls=[ToolCall("a"), ToolCall("b", id="call_1"), ToolCall("c", extra={"type": "mcp", "more": 1})]
        ),
        ToolMessage("of c", name="c"),
        ToolMessage("of a"),
        ToolMessage("of b", tool_call_id="call_1"),
    ]
    missing = write([Sample(id="a", trace=Trace(messages=messages))], path, "openai-chat")
    assert missing == {"results without an id": 3, "calls without an id": 2, "assistant: tool_calls.extra": 2}
    [row] = map(json.loads, path.read_text().splitlines())
    orphan, said, *answers = row["messages"]
    made = [call["id"] for call in said["tool_calls"]]
    assert made[1] == "call_1"
    assert len({*made, orphan["tool_call_id"]}) == 4
    assert [one["tool_call_id"] for one in answers] == [made[2], made[0], made[1]]
    assert {call["type"] for call in said["tool_calls"]} == {"function"}


def test_for_openai_a_call_without_an_id_does_not_get_that_of_a_result_of_another(tmp_path):
    path = tmp_path / "a.jsonl"
    messages = [ToolMessage("of nothing", tool_call_id="call_1"), AIMessage(tool_calls=[ToolCall("a")])]
    write([Sample(id="a", trace=Trace(messages=messages))], path, "openai-chat")
    [row] = map(json.loads, path.read_text().splitlines())
    assert [call["id"] for call in row["messages"][1]["tool_calls"]] == ["call_2"]


def test_for_openai_media_say_of_what_type_they_are_and_arguments_are_as_they_came(tmp_path):
    path = tmp_path / "a.jsonl"
    image = MediaPart(kind="image", data="AA==", mime_type="image/png")
    broken = ToolCall("f", id="1", args_raw='{"a": ', args_error="not JSON")
    messages = [HumanMessage([image]), AIMessage(tool_calls=[broken])]
    write([Sample(id="a", trace=Trace(messages=messages))], path, "openai-chat")
    [row] = map(json.loads, path.read_text().splitlines())
    asked, said = row["messages"]
    assert asked["content"] == [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]
    assert said["tool_calls"][0]["function"]["arguments"] == '{"a": '


def test_content_that_openai_cannot_hold_is_an_empty_text(tmp_path):
    path = tmp_path / "a.jsonl"
    nothing = [MediaPart(kind="image", name="x")]
    messages = [HumanMessage(nothing), AIMessage(nothing), HumanMessage("Well?")]
    write([Sample(id="a", trace=Trace(messages=messages))], path, "openai-chat")
    [row] = map(json.loads, path.read_text().splitlines())
    assert row["messages"][:2] == [{"role": "user", "content": ""}, {"role": "assistant"}]


def heard(sample: Sample) -> list[object]:
    """Return who said and called what."""
    return [
        (one.role, one.text, [(call.name, call.args, call.args_raw) for call in getattr(one, "tool_calls", ())])
        for one in sample.trace.messages
    ]


def test_recordings_of_others_are_the_same_when_they_are_written_and_read(tmp_path, shared_data):
    """In our own format, they are the same in every detail; in OpenAI's, in all that was said and called."""
    samples: list[Sample] = []
    for folder in sorted((shared_data / "traces").iterdir()):
        paths = [path for path in folder.rglob("*.json*") if path.is_file()]
        for path in Random().sample(paths, min(len(paths), 5)):  # noqa: S311 - other ones each time
            with suppress(TraceError):
                samples += islice(read(path, on_error=lambda _: None), 30)
    assert len(samples) > 100
    own, chat = tmp_path / "own.jsonl.zst", tmp_path / "chat.jsonl"
    assert write(samples, own) == {}
    assert list(read(own, on_error=lambda _: None)) == samples  # some repeat others
    missing = write(samples, chat, "openai-chat")
    core = ("text", "tool_calls", "tool_calls.name", "tool_calls.args", "tool_calls.id", "tool_call_id")
    assert not {f"{role}: {one}" for role in ("user", "assistant", "tool") for one in core} & missing.keys()
    assert {detect(json.loads(line)).name for line in chat.read_text(encoding="utf-8").splitlines()} == {"openai-chat"}
    problems: list[TraceError] = []
    assert [*map(heard, read(chat, on_error=problems.append))] == [*map(heard, samples)]
    assert all(problem.index is None for problem in problems)


def test_a_file_may_be_written_over_while_it_is_read(tmp_path):
    path = tmp_path / "same.jsonl"
    samples = [Sample.of([HumanMessage(f"Hi {number}")], id=str(number)) for number in range(5)]
    write(samples, path)
    write(read(path), path)
    assert list(read(path)) == samples
    assert [one.name for one in tmp_path.iterdir()] == ["same.jsonl"]


def test_what_stops_the_writing_leaves_the_file_that_was_there(tmp_path):
    def broken():
        yield Sample.of([HumanMessage("Hi")])
        raise ValueError("stopped")

    path = tmp_path / "a.jsonl"
    path.write_text("kept")
    with pytest.raises(ValueError, match="stopped"):
        write(broken(), path)
    assert path.read_text() == "kept"
    assert [one.name for one in tmp_path.iterdir()] == ["a.jsonl"]


def test_what_is_no_sample_is_an_error_and_no_file(tmp_path):
    with pytest.raises(ConfigError, match="samples is one Sample: pass a list"):
        write(Sample.of([HumanMessage("Hi")]), tmp_path / "out.jsonl")  # type: ignore[arg-type] - what is tried here
    assert not any(tmp_path.iterdir())


def test_half_characters_are_written_as_escapes_and_read_with_a_warning(tmp_path):
    """A recording may be cut within an emoji."""
    sample = Sample.of([HumanMessage("cut \ud83d here, \u00e9"), AIMessage("ok")], id="1")
    path = tmp_path / "cut.jsonl"
    write([sample], path)
    assert "\\ud83d" in path.read_text(encoding="ascii")
    [again] = read(path)
    assert again.trace.messages[0].text == "cut \ufffd here, \u00e9"
    assert again.trace.messages[1] == sample.trace.messages[1]
    [warning] = again.trace.warnings
    assert "lone surrogates" in warning.message
