import json
import re

import pytest

from judgekit import AIMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage, Usage
from judgekit.errors import TraceError
from judgekit.formats.detect import detect
from judgekit.formats.readers.gemini import GeminiReader
from judgekit.traces.message import MediaPart, OtherPart, ReasoningPart, TextPart
from judgekit.traces.pairing import pair_results
from judgekit.traces.recording import ToolDefinition

READER = GeminiReader()

HI = {"role": "user", "parts": [{"text": "Hi"}]}
WEATHER = [
    {
        "role": "user",
        "parts": [{"text": "Weather in SF and NY?"}, {"inlineData": {"mimeType": "image/png", "data": "aGk="}}],
    },
    {
        "role": "model",
        "parts": [
            {"text": "let me think", "thought": True},
            {"functionCall": {"name": "get_weather", "args": {"location": "SF"}}, "thoughtSignature": "sig"},
            {"functionCall": {"id": "c2", "name": "get_weather", "args": {"location": "NY"}}},
        ],
    },
    {
        "role": "user",
        "parts": [
            {"functionResponse": {"name": "get_weather", "response": {"result": "65F"}}},
            {"functionResponse": {"id": "c2", "name": "get_weather", "response": {"error": "timeout"}}},
        ],
    },
    {"role": "model", "parts": [{"text": "65F; NY failed"}]},
]
REQUEST = {
    "model": "gemini-3-flash",
    "systemInstruction": {"parts": [{"text": "Be brief"}]},
    "contents": WEATHER,
    "tools": [
        {"functionDeclarations": [{"name": "get_weather", "description": "d", "parameters": {"type": "OBJECT"}}]},
        {"googleSearch": {"timeRangeFilter": {}}},
    ],
    "generationConfig": {"temperature": 0.5},
}
RESPONSE = {
    "candidates": [
        {
            "content": {"role": "model", "parts": [{"text": "a"}]},
            "finishReason": "STOP",
            "index": 0,
            "avgLogprobs": -0.1,
        },
        {"content": {"role": "model", "parts": [{"text": "b"}]}, "finishReason": "MAX_TOKENS", "index": 1},
    ],
    "usageMetadata": {
        "promptTokenCount": 10,
        "toolUsePromptTokenCount": 5,
        "candidatesTokenCount": 3,
        "thoughtsTokenCount": 4,
        "cachedContentTokenCount": 2,
        "totalTokenCount": 22,
    },
    "modelVersion": "gemini-3-flash-001",
    "responseId": "r1",
    "createTime": "2026-01-02T03:04:05Z",
    "promptFeedback": {"safetyRatings": []},
}
STREAM = [
    {
        "candidates": [{"content": {"role": "model", "parts": [{"text": "h", "thought": True}]}, "index": 0}],
        "responseId": "r",
    },
    {
        "candidates": [
            {"content": {"role": "model", "parts": [{"text": "m", "thought": True}, {"text": "Hel"}]}, "index": 0}
        ],
        "usageMetadata": {"promptTokenCount": 1, "totalTokenCount": 2},
        "responseId": "r",
    },
    {
        "candidates": [{"content": {"role": "model", "parts": [{"text": "lo"}]}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 3, "totalTokenCount": 4},
        "responseId": "r",
    },
]


def snake(value):
    """Return the SDK's form: other names, and nulls for missing values."""
    if isinstance(value, list):
        return [snake(item) for item in value]
    if not isinstance(value, dict):
        return value
    named = {re.sub(r"[A-Z]", lambda match: f"_{match[0].lower()}", key): snake(item) for key, item in value.items()}
    return {**named, "video_metadata": None} if "text" in named else named


def model(*parts):
    return [{"role": "model", "parts": list(parts)}]


def user(*parts):
    return [{"role": "user", "parts": list(parts)}]


def returned(response, **more):
    return user({"functionResponse": {"name": "f", "response": response, **more}})


CODE = {"executableCode": {"language": "PYTHON", "code": "1 + 1"}}
SEARCH = {"toolType": "GOOGLE_SEARCH_WEB", "id": "s"}
PROVIDER = {"executor": "provider"}
CONTENTS = {
    "a role that is missing is the user's": ([{"parts": [{"text": "Hi"}]}], [HumanMessage("Hi")]),
    "parts that are not in a list": ([{"role": "user", "parts": {"text": "Hi"}}], [HumanMessage("Hi")]),
    "parts that are texts": ([{"role": "user", "parts": ["a", "b"]}], [HumanMessage([TextPart("a"), TextPart("b")])]),
    "no parts": ([HI, {"role": "model"}], [HumanMessage("Hi"), AIMessage()]),
    "a system role": ([{"role": "system", "parts": [{"text": "s"}]}, HI], [SystemMessage("s"), HumanMessage("Hi")]),
    "signed text": (
        model({"text": "a", "thoughtSignature": "s"}),
        [AIMessage([TextPart("a", extra={"thoughtSignature": "s"})])],
    ),
    "signed thought": (
        model({"text": "a", "thought": True, "thoughtSignature": "s"}),
        [AIMessage([ReasoningPart("a", extra={"thoughtSignature": "s"})])],
    ),
    "not thought": (model({"text": "a", "thought": False}), [AIMessage("a")]),
    "media": (
        user(
            {"inlineData": {"mimeType": "audio/wav", "data": "aGk="}},
            {"fileData": {"fileUri": "gs://a/b.mp4", "mimeType": "video/mp4"}, "videoMetadata": {"fps": 2}},
            {"file_data": {"file_uri": "gs://a/b.pdf", "mime_type": "application/pdf", "display_name": "b"}},
        ),
        [
            HumanMessage(
                [
                    MediaPart(kind="audio", mime_type="audio/wav", data="aGk="),
                    MediaPart(
                        kind="video", mime_type="video/mp4", url="gs://a/b.mp4", extra={"videoMetadata": {"fps": 2}}
                    ),
                    MediaPart(kind="file", mime_type="application/pdf", url="gs://a/b.pdf", name="b"),
                ]
            )
        ],
    ),
    "unknown parts": ([HI, *user({"hologram": 1})], [HumanMessage("Hi"), HumanMessage([OtherPart({"hologram": 1})])]),
    "calls without arguments": (
        model({"functionCall": {"name": "f"}}, {"functionCall": {"name": "f", "args": None, "id": ""}}),
        [AIMessage(tool_calls=[ToolCall("f"), ToolCall("f")])],
    ),
    "broken arguments": (
        model({"functionCall": {"name": "f", "args": '{"a": "cut'}}),
        [AIMessage(tool_calls=[ToolCall("f", '{"a": "cut')])],
    ),
    "result": (returned({"result": "x"}), [ToolMessage("x", name="f")]),
    "output": (returned({"output": [1]}), [ToolMessage("[1]", name="f")]),
    "result beside more": (returned({"result": 1, "b": 2}), [ToolMessage('{"result": 1, "b": 2}', name="f")]),
    "any object": (returned({"temperature": "21C"}), [ToolMessage('{"temperature": "21C"}', name="f")]),
    "error": (returned({"error": "timeout"}), [ToolMessage("timeout", name="f", is_error=True)]),
    "error that is an object": (
        returned({"error": {"code": 5}}),
        [ToolMessage('{"code": 5}', name="f", is_error=True)],
    ),
    "error beside more": (
        returned({"error": "e", "output": "o"}),
        [ToolMessage('{"error": "e", "output": "o"}', name="f", is_error=True)],
    ),
    "no error": (returned({"error": None, "output": "o"}), [ToolMessage("o", name="f")]),
    "an error that is empty": (returned({"error": ""}), [ToolMessage('{"error": ""}', name="f")]),
    "no response": (returned(None), [ToolMessage(name="f")]),
    "a response that is a text": (returned("x"), [ToolMessage("x", name="f")]),
    "media in a result": (
        returned({"result": "x"}, parts=[{"inlineData": {"mimeType": "image/png", "data": "aGk="}}, {"odd": 1}]),
        [
            ToolMessage(
                [TextPart("x"), MediaPart(kind="image", mime_type="image/png", data="aGk="), OtherPart({"odd": 1})],
                name="f",
            )
        ],
    ),
    "a result that goes on": (
        returned({"result": 1}, willContinue=True, scheduling="SILENT"),
        [ToolMessage("1", name="f", extra={"willContinue": True, "scheduling": "SILENT"})],
    ),
    "results and text": (
        [*user({"text": "a"}), *user({"functionResponse": {"name": "f", "response": {"result": 1}}}, {"text": "b"})],
        [HumanMessage("a"), ToolMessage("1", name="f"), HumanMessage("b")],
    ),
    "a role for results": (
        [
            HI,
            {"role": "function", "parts": [{"functionResponse": {"name": "f", "response": {}}}]},
            {"role": "tool", "parts": ["x"]},
        ],
        [HumanMessage("Hi"), ToolMessage("{}", name="f"), ToolMessage("x")],
    ),
    "code that the provider ran": (
        model({"text": "a"}, CODE, {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2"}}, {"text": "b"}),
        [
            AIMessage("a", tool_calls=[ToolCall("code_execution", CODE["executableCode"], metadata=PROVIDER)]),
            ToolMessage(
                "2", name="code_execution", is_error=False, extra={"codeExecutionResult": {"outcome": "OUTCOME_OK"}}
            ),
            AIMessage("b"),
        ],
    ),
    "code that failed": (
        model(CODE, {"codeExecutionResult": {"outcome": "OUTCOME_FAILED"}}),
        [
            AIMessage(tool_calls=[ToolCall("code_execution", CODE["executableCode"], metadata=PROVIDER)]),
            ToolMessage(
                name="code_execution", is_error=True, extra={"codeExecutionResult": {"outcome": "OUTCOME_FAILED"}}
            ),
        ],
    ),
    "a tool of the provider": (
        model(
            {"toolCall": {**SEARCH, "args": {"q": "x"}}},
            {"toolResponse": {**SEARCH, "response": {"hits": 1}}},
            {"text": "b"},
        ),
        [
            AIMessage(tool_calls=[ToolCall("GOOGLE_SEARCH_WEB", {"q": "x"}, id="s", metadata=PROVIDER)]),
            ToolMessage('{"hits": 1}', name="GOOGLE_SEARCH_WEB", tool_call_id="s"),
            AIMessage("b"),
        ],
    ),
    "extra keys of contents": ([{**HI, "x": 1}], [HumanMessage("Hi", extra={"x": 1})]),
}


def test_contents_are_read_as_our_messages():
    for contents, messages in CONTENTS.values():
        for document in (contents, {"contents": contents}):
            assert detect(document).name == "gemini"
            [record] = READER.records(document)
            assert READER.sample(record, 0).trace.messages == tuple(messages)


@pytest.mark.parametrize(("outcome", "is_error"), [("OUTCOME_DEADLINE_EXCEEDED", True), ("OUTCOME_UNSPECIFIED", None)])
def test_code_that_took_too_long_failed_and_of_an_outcome_without_a_name_nothing_is_known(outcome, is_error):
    result = {"codeExecutionResult": {"outcome": outcome, "output": ""}}
    assert READER.sample(model(CODE, result), 0).trace.messages[-1].is_error is is_error


@pytest.mark.parametrize("document", [REQUEST, snake(REQUEST)], ids=["camelCase", "snake_case"])
def test_a_request_is_read_whole(document):
    trace = READER.sample(document, 0).trace
    signature = "thoughtSignature" if "systemInstruction" in document else "thought_signature"
    assert trace.messages == (
        SystemMessage("Be brief"),
        HumanMessage([TextPart("Weather in SF and NY?"), MediaPart(kind="image", mime_type="image/png", data="aGk=")]),
        AIMessage(
            [ReasoningPart("let me think")],
            tool_calls=[
                ToolCall("get_weather", {"location": "SF"}, extra={signature: "sig"}),
                ToolCall("get_weather", {"location": "NY"}, id="c2"),
            ],
        ),
        ToolMessage("65F", name="get_weather"),
        ToolMessage("timeout", name="get_weather", tool_call_id="c2", is_error=True),
        AIMessage("65F; NY failed"),
    )
    assert trace.warnings == ()
    assert [caller.position for caller in pair_results(trace.messages).calls.values()] == [0, 1]
    assert trace.tools[0] == ToolDefinition("get_weather", description="d", parameters={"type": "OBJECT"})
    assert trace.tools[1].name.lower().replace("_", "") == "googlesearch"
    assert trace.extra["model"] == "gemini-3-flash"


@pytest.mark.parametrize(
    ("sent", "messages"),
    [
        ({"contents": "Hi"}, [HumanMessage("Hi")]),
        ({"contents": ["a", {"text": "b"}]}, [HumanMessage([TextPart("a"), TextPart("b")])]),
        (
            {"contents": ["a", {"functionCall": {"name": "f"}}, HI, HI]},
            [HumanMessage("a"), AIMessage(tool_calls=[ToolCall("f")]), HumanMessage("Hi"), HumanMessage("Hi")],
        ),
        ({"contents": HI, "config": {"system_instruction": "s"}}, [SystemMessage("s"), HumanMessage("Hi")]),
        ({"contents": [HI], "config": {"systemInstruction": ["s"]}}, [SystemMessage("s"), HumanMessage("Hi")]),
    ],
)
def test_a_pair_takes_the_shapes_that_the_sdk_takes(sent, messages):
    response = {"candidates": RESPONSE["candidates"][:1]}
    document = {"key": "k", "request": {**sent, "config": {**sent.get("config", {}), "seed": 1}}, "response": response}
    assert detect(document).name == "gemini"
    sample = READER.sample(document, 0)
    assert sample.id == "k"
    assert sample.trace.messages[:-1] == tuple(messages)
    assert sample.trace.response == "a"
    assert sample.trace.extra == {"request": {"config": {"seed": 1}}}


SEVERAL = "of several candidates, the first is read; the others are kept in its extra"


def test_of_several_candidates_the_first_is_read_and_the_others_are_kept(forgotten):
    for document in (RESPONSE, {"request": {"contents": [HI]}, "response": RESPONSE}, {**RESPONSE, "contents": [HI]}):
        [record] = READER.records(document)
        sample = READER.sample(record, 0)
        answer = sample.trace.messages[-1]
        assert (sample.id, answer.text, answer.finish_reason) == ("r1", "a", "STOP")
        assert (answer.model, answer.timestamp.year) == ("gemini-3-flash-001", 2026)
        assert answer.extra == {"avgLogprobs": -0.1, "choices": [RESPONSE["candidates"][1]]}
        assert SEVERAL in [warning.message for warning in sample.trace.warnings]
        assert forgotten(READER, document) == []


def test_usage_adds_up_and_keeps_what_was_summed():
    sample = READER.sample(READER.records(RESPONSE)[0], 0)
    assert sample.trace.messages[-1].usage == Usage(
        input_tokens=15,
        output_tokens=7,
        cached_tokens=2,
        reasoning_tokens=4,
        extra={"promptTokenCount": 10, "toolUsePromptTokenCount": 5, "candidatesTokenCount": 3, "totalTokenCount": 22},
    )


@pytest.mark.parametrize("chunks", [STREAM, [{**one, "responseId": None} for one in STREAM]], ids=["one id", "no id"])
def test_streamed_chunks_become_one_message(chunks):
    assert detect(chunks).name == "gemini"
    [record] = READER.records(chunks)
    trace = READER.sample(record, 0).trace
    [message] = trace.messages
    assert message.content == (ReasoningPart("hm"), TextPart("Hello"))
    assert (message.finish_reason, message.usage.output_tokens) == ("STOP", 3)
    assert [one.get("usageMetadata") for one in trace.extra["response"]][1] == STREAM[1]["usageMetadata"]
    paired = READER.sample({"request": {"contents": [HI]}, "response": chunks}, 0)
    assert [message.role for message in paired.trace.messages] == ["user", "assistant"]


def test_streamed_candidates_are_told_apart_by_their_index():
    chunks = [
        {"candidates": [{"content": {"parts": [{"text": text}]}, "index": index}], "responseId": "r"}
        for index, text in [(1, "a"), (0, "x"), (1, "b"), (0, "y")]
    ]
    [record] = READER.records(chunks)
    trace = READER.sample(record, 0).trace
    assert trace.response == "xy"
    assert SEVERAL in [warning.message for warning in trace.warnings]


def test_responses_in_a_list_are_not_chunks():
    responses = [{**RESPONSE, "candidates": RESPONSE["candidates"][:1], "responseId": name} for name in "ab"]
    assert [READER.sample(record, 0).id for record in READER.records(responses)] == ["a", "b"]


def test_arguments_streamed_in_pieces_are_kept_but_never_taken_for_whole():
    calls = [
        {"name": "f", "willContinue": True},
        {"partialArgs": [{"jsonPath": "$.a", "numberValue": 5}], "willContinue": True},
        {},
    ]
    chunks = [{"candidates": [{"content": {"parts": [{"functionCall": call}]}}], "responseId": "r"} for call in calls]
    [message] = READER.sample(chunks, 0).trace.messages
    [call] = message.tool_calls
    assert (call.name, call.args) == ("f", {})
    assert call.args_error
    assert '"numberValue": 5' in call.args_raw


def test_calls_that_the_sdk_made_by_itself_stand_between_question_and_answer():
    called = [*model({"functionCall": {"name": "f"}}), *returned({"result": 1})]
    response = {"candidates": RESPONSE["candidates"][:1], "automatic_function_calling_history": [HI, *called]}
    for document in ({"request": {"contents": "Hi"}, "response": response}, response):
        roles = [message.role for message in READER.sample(document, 0).trace.messages]
        assert roles == ["user", "assistant", "tool", "assistant"]
    trace = READER.sample({"request": {"contents": "Ho"}, "response": response}, 0).trace
    assert [message.text for message in trace.messages] == ["Hi", "", "1", "a"]
    assert [warning.path for warning in trace.warnings] == ["request.contents"]
    assert "instead of continuing them" in trace.warnings[0].message


def test_chunks_that_were_streamed_after_calls_of_the_sdk_each_have_the_history():
    called = [*model({"functionCall": {"name": "f"}}), *returned({"result": 1})]
    chunks = [
        {"candidates": [{"content": {"role": "model", "parts": [part]}}], **past}
        for part, past in (
            ({"functionCall": {"name": "f"}}, {}),
            ({"text": "it is "}, {"automatic_function_calling_history": [HI, *called]}),
            ({"text": "1"}, {"automatic_function_calling_history": [HI, *called]}),
        )
    ]
    trace = READER.sample({"request": {"contents": "Hi"}, "response": chunks}, 0).trace
    assert [message.role for message in trace.messages] == ["user", "assistant", "tool", "assistant"]
    assert (trace.response, len(trace.tool_calls()), trace.warnings) == ("it is 1", 1, ())


def test_a_history_that_writes_bytes_in_another_way_continues_the_request():
    contents, past = [[{**HI, "parts": [{"inlineData": {"data": data}}]}] for data in ("a+/=", "a-_=")]
    response = {"candidates": RESPONSE["candidates"][:1], "automaticFunctionCallingHistory": [*past, HI]}
    trace = READER.sample({"request": {"contents": contents}, "response": response}, 0).trace
    assert [message.role for message in trace.messages] == ["user", "user", "assistant"]
    assert trace.warnings == ()


def test_an_error_in_place_of_the_answer_is_told_and_kept():
    document = {"request": {"contents": [HI]}, "response": {"error": {"code": 429}}}
    assert detect(document).name == "gemini"
    trace = READER.sample(document, 0).trace
    assert (trace.messages, trace.extra) == ((HumanMessage("Hi"),), {"response": {"error": {"code": 429}}})
    assert [(one.message, one.path) for one in trace.warnings] == [("contains no answer: {'code': 429}", "response")]


def test_an_error_says_where_and_what_was_found():
    cases = [
        ([{**HI, "role": "martian"}], "contents[0].role: expected one of user, model"),
        ({"contents": user({"text": 5})}, "contents[0].parts[0].text: expected a string, found 5"),
        (
            {"contents": model({"functionCall": {"args": {"a": 1}}})},
            "contents[0].parts[0].functionCall.name: expected a tool name",
        ),
        ({"contents": model({"functionCall": "f"})}, "contents[0].parts[0].functionCall: expected an object"),
        ({"contents": user({"functionResponse": 5})}, "contents[0].parts[0].functionResponse: expected an object"),
        ({"contents": [{"role": "system", "parts": [CODE]}]}, "contents[0].parts[0].executableCode: expected no call"),
        ({"contents": []}, "the record: contains no messages"),
        (5, "the record: expected an object"),
    ]
    for record, problem in cases:
        with pytest.raises(TraceError, match=re.escape(problem)):
            READER.sample(record, 0)


COUNTED = {"usageMetadata": {"promptTokenCount": 7, "totalTokenCount": 7}, "modelVersion": "m", "responseId": "r"}
ENDED = {
    "the prompt was blocked": (
        {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT", "safetyRatings": [{"category": "c"}]}, **COUNTED},
        "PROHIBITED_CONTENT",
        ["the prompt was blocked: PROHIBITED_CONTENT"],
    ),
    "the prompt was blocked, and no candidates": (
        {"candidates": [], "promptFeedback": {"blockReason": "SAFETY"}, **COUNTED},
        "SAFETY",
        ["the prompt was blocked: SAFETY"],
    ),
    "nothing is said of it": (COUNTED, None, ["the response has no candidates"]),
    "no candidates": ({"candidates": [], **COUNTED}, None, ["the response has no candidates"]),
    "a candidate without content": ({"candidates": [{"finishReason": "SAFETY", "index": 0}], **COUNTED}, "SAFETY", []),
    "a candidate without parts": (
        {"candidates": [{"content": {"role": "model"}, "finishReason": "MAX_TOKENS"}], **COUNTED},
        "MAX_TOKENS",
        [],
    ),
}


def test_a_response_without_an_answer_keeps_its_usage_and_says_why_it_ended(no_question, forgotten):
    for spelled in [lambda one: one, snake]:
        for streamed in [False, True]:
            for response, reason, problems in ENDED.values():
                alone = spelled(response)
                pair = {"request": {"contents": [HI]}, "response": [alone] if streamed else alone}
                for document, unasked in ((pair, []), (alone, [no_question.message])):
                    assert detect(document).name == "gemini"
                    [record] = READER.records(document)
                    trace = READER.sample(record, 0).trace
                    answer = trace.messages[-1]
                    assert (answer.text, answer.finish_reason, answer.model, answer.id) == ("", reason, "m", "r")
                    assert answer.usage.input_tokens == 7
                    assert [warning.message for warning in trace.warnings] == [*problems, *unasked]
                    assert forgotten(READER, document) == []


def test_an_error_among_the_chunks_of_a_stream_is_told():
    document = {"request": {"contents": [HI]}, "response": [*STREAM[:2], {"error": {"code": 503}}]}
    trace = READER.sample(document, 0).trace
    assert trace.response == "Hel"
    assert [(warning.message, warning.path) for warning in trace.warnings] == [
        ("the stream reports an error: {'code': 503}", "response[2].error")
    ]


def test_a_request_and_its_response_are_one_conversation(shared_data):
    folders = sorted({path.parent for path in shared_data.glob("traces/lingua/snapshots/*/*google/response.json")})
    assert len(folders) == 47
    for folder in folders:
        pair = {name: json.loads((folder / f"{name}.json").read_text()) for name in ("request", "response")}
        [record] = READER.records(pair)
        question, answered = (READER.sample(pair[name], 0).trace.messages for name in ("request", "response"))
        sample = READER.sample(record, 0)
        assert sample.trace.messages == question + answered
        assert sample.id == pair["response"]["responseId"]


def test_nothing_is_forgotten_and_nothing_crashes(intact):
    contents = [content for recorded, _ in CONTENTS.values() for content in recorded]
    pair = {"request": REQUEST, "response": RESPONSE}
    intact(READER, REQUEST, snake(REQUEST), RESPONSE, STREAM, pair, {"contents": contents})
