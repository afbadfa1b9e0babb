"""Messages of frameworks in the spans of every tracer, with the calls that the spans of tools repeat."""

import json
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.errors import TraceError
from judgekit.formats.readers.langchain import LangChainReader
from judgekit.formats.readers.langfuse import LangfuseReader
from judgekit.formats.readers.langsmith import LangSmithReader
from judgekit.formats.readers.mlflow import MLflowReader
from judgekit.formats.readers.openinference import OpenInferenceReader
from judgekit.formats.readers.otel import OTelReader
from judgekit.formats.reading import read
from judgekit.traces.pairing import pair_results

SPEC = {"type": "object", "properties": {"city": {"type": "string"}}}


def dumped(value):
    return value if isinstance(value, str) else json.dumps(value)


# A conversation is a list of ("system", text), ("user", text), ("assistant", text, calls) and ("tool", id, name, text);
# a call is (id, name, arguments). Each framework writes it as a request, and one answer as a response.


def ai_sdk(said):
    match said:
        case ("assistant", text, calls):
            parts = [{"type": "text", "text": text}] * bool(text)
            parts += [{"type": "tool-call", "toolCallId": i, "toolName": n, "input": a} for i, n, a in calls]
            return {"role": "assistant", "content": parts}
        case ("tool", identity, name, text):
            output = {"type": "text", "value": text}
            return {
                "role": "tool",
                "content": [{"type": "tool-result", "toolCallId": identity, "toolName": name, "output": output}],
            }
        case ("system", text):
            return {"role": "system", "content": text}
        case (role, text):
            return {"role": role, "content": [{"type": "text", "text": text}]}


def ai_sdk_answer(text, calls):
    called = [{"toolCallType": "function", "toolCallId": i, "toolName": n, "input": json.dumps(a)} for i, n, a in calls]
    if text and calls:
        return {"role": "assistant", "content": text, "tool_calls": json.dumps(called)}
    return called or text


def ai_sdk_result(text, calls):
    called = [{"toolCallId": i, "toolName": n, "args": a} for i, n, a in calls]
    return {"text": text, "finishReason": "stop", **({"toolCalls": called} if called else {})}


def parts(said):
    match said:
        case ("assistant", text, calls):
            spoken = [{"type": "text", "content": text}] * bool(text)
            return {
                "role": "assistant",
                "parts": [*spoken, *({"type": "tool_call", "id": i, "name": n, "arguments": a} for i, n, a in calls)],
            }
        case ("tool", identity, name, text):
            result = {"type": "tool_call_response", "id": identity, "name": name, "result": text}
            return {"role": "user", "parts": [result]}
        case (role, text):
            return {"role": role, "parts": [{"type": "text", "content": text}]}


def openai(said):
    match said:
        case ("assistant", text, calls):
            called = [
                {"id": i, "type": "function", "function": {"name": n, "arguments": json.dumps(a)}} for i, n, a in calls
            ]
            return {"role": "assistant", "content": text, **({"tool_calls": called} if called else {})}
        case ("tool", identity, name, text):
            return {"role": "tool", "content": text, "tool_call_id": identity, "name": name}
        case (role, text):
            return {"role": role, "content": text}


def event(said):
    message = openai(said)
    if "tool_call_id" in message:
        message["id"] = message.pop("tool_call_id")
    return {**message, "gen_ai.system": "openai", "event.name": f"gen_ai.{said[0]}.message"}


def event_answer(text, calls):
    return {"index": 0, "message": openai(("assistant", text, calls)), "event.name": "gen_ai.choice"}


def kernel(said):
    return {"role": said[0], "gen_ai.event.content": json.dumps(openai(said)), "gen_ai.system": "openai"}


def kernel_answer(text, calls):
    message = {**openai(("assistant", text, calls)), "role": "Assistant"}
    return {"gen_ai.event.content": json.dumps({"index": 0, "message": message, "finish_reason": "Stop"})}


def strands(said):
    match said:
        case ("assistant", text, calls):
            blocks = [{"text": text}] * bool(text)
            blocks += [{"toolUse": {"toolUseId": i, "name": n, "input": a}} for i, n, a in calls]
        case ("tool", identity, _, text):
            blocks = [{"toolResult": {"toolUseId": identity, "status": "success", "content": [{"text": text}]}}]
        case (_, text):
            blocks = [{"text": text}]
    return {"role": said[0], "content": json.dumps(blocks)}


def strands_answer(text, calls):
    return {"message": strands(("assistant", text, calls))["content"], "finish_reason": "end_turn"}


def content(said):
    match said:
        case ("assistant", text, calls):
            spoken = [{"text": text}] * bool(text)
            return {
                "role": "model",
                "parts": [*spoken, *({"function_call": {"name": n, "args": a}} for _, n, a in calls)],
            }
        case ("tool", _, name, text):
            return {"role": "user", "parts": [{"function_response": {"name": name, "response": {"result": text}}}]}
        case (_, text):
            return {"role": "user", "parts": [{"text": text}]}


def adk(conversation):
    [(_, instruction), *rest] = conversation
    config = {"system_instruction": instruction, "tools": [{"function_declarations": [{"name": "f"}]}]}
    return {"model": "gemini-2.5-flash", "config": config, "contents": list(map(content, rest))}


def adk_answer(text, calls):
    return {"content": content(("assistant", text, calls)), "finish_reason": "STOP", "usage_metadata": {}}


def langchain(said):
    message = openai(said)
    if "tool_calls" in message:
        message["additional_kwargs"] = {"tool_calls": message.pop("tool_calls")}
    if "name" in message:
        message["additional_kwargs"] = {"name": message.pop("name")}
    return message


def langchain_request(conversation):
    tool = {"type": "function", "function": {"name": "f", "description": "d", "parameters": SPEC}}
    return [*map(langchain, conversation), {"role": "tool", "content": tool}]


def langchain_answer(text, calls):
    return {"additional_kwargs": {"refusal": None}, **langchain(("assistant", text, calls))}


def nested(said):
    message = openai(said)
    message["tool_calls"] = [{"tool_call": call} for call in message.get("tool_calls", ())]
    return {"message": message}


def listed(one):
    return lambda conversation: list(map(one, conversation))


def wrapped(one):
    return lambda conversation: {"messages": list(map(one, conversation))}


FRAMEWORKS = {
    "AI SDK": (listed(ai_sdk), ai_sdk_answer),
    "AI SDK, result": (wrapped(ai_sdk), ai_sdk_result),
    "Pydantic AI": (listed(parts), lambda text, calls: [parts(("assistant", text, calls))]),
    "Pydantic AI, events": (listed(event), event_answer),
    "Semantic Kernel": (listed(kernel), kernel_answer),
    "Strands": (listed(strands), strands_answer),
    "ADK": (adk, adk_answer),
    "LangChain": (langchain_request, langchain_answer),
    "LangChain, calls alone": (
        langchain_request,
        lambda text, calls: text or {**langchain(("assistant", "", calls))["additional_kwargs"], "refusal": None},
    ),
    "OpenInference": (listed(nested), lambda text, calls: [nested(("assistant", text, calls))]),
    "OpenAI": (wrapped(openai), lambda text, calls: {"choices": [{"message": openai(("assistant", text, calls))}]}),
}


def langfuse(spans):
    kinds = {"model": "GENERATION", "tool": "TOOL", "agent": "AGENT", "chain": "SPAN"}
    return LangfuseReader(), [
        {
            "id": f"o{number}",
            "traceId": "t",
            "type": kinds[kind],
            "name": name,
            "parentObservationId": f"o{parent}" if parent is not None else None,
            "startTime": f"2026-01-01T00:00:{number:02}Z",
            "endTime": f"2026-01-01T00:{'00' if kind in ('model', 'tool') else '59'}:{number:02}Z",
            "input": None if given is None else dumped(given),
            "output": None if returned is None else dumped(returned),
        }
        for number, (kind, name, parent, given, returned) in enumerate(spans)
    ]


def langsmith(spans):
    kinds = {"model": "llm", "tool": "tool", "agent": "chain", "chain": "chain"}

    def values(value, name):
        return value if isinstance(value, dict) else {} if value is None else {name: value}

    return LangSmithReader(), [
        {
            "id": f"o{number}",
            "trace_id": "o0",
            "run_type": kinds[kind],
            "name": name,
            "parent_run_id": f"o{parent}" if parent is not None else None,
            "dotted_order": f"{number:02}",
            "start_time": f"2026-01-01T00:00:{number:02}Z",
            "end_time": f"2026-01-01T00:{'00' if kind in ('model', 'tool') else '59'}:{number:02}Z",
            "inputs": values(given, "input"),
            "outputs": values(returned, "output"),
        }
        for number, (kind, name, parent, given, returned) in enumerate(spans)
    ]


def otlp(spans, attributes):
    return [
        {
            "name": name,
            "context": {"trace_id": "1f", "span_id": f"a{number}"},
            "parent_id": f"a{parent}" if parent is not None else None,
            "start_time": f"2026-01-01T00:00:{number:02}Z",
            "end_time": f"2026-01-01T00:{'00' if kind in ('model', 'tool') else '59'}:{number:02}Z",
            "attributes": {
                name: value for name, value in attributes(kind, name, given, returned).items() if value is not None
            },
        }
        for number, (kind, name, parent, given, returned) in enumerate(spans)
    ]


def or_none(value):
    return None if value is None else dumped(value)


def mlflow(spans):
    kinds = {"model": "CHAT_MODEL", "tool": "TOOL", "agent": "AGENT", "chain": "CHAIN"}

    def attributes(kind, _, given, returned):
        values = {"mlflow.spanType": kinds[kind], "mlflow.spanInputs": given, "mlflow.spanOutputs": returned}
        return {name: None if value is None else json.dumps(value) for name, value in values.items()}

    return MLflowReader(), {"info": {"trace_id": "tr"}, "data": {"spans": otlp(spans, attributes)}}


def openinference(spans):
    kinds = {"model": "LLM", "tool": "TOOL", "agent": "AGENT", "chain": "CHAIN"}
    return OpenInferenceReader(), otlp(
        spans,
        lambda kind, _, given, returned: {
            "openinference.span.kind": kinds[kind],
            "input.value": or_none(given),
            "output.value": or_none(returned),
        },
    )


OTEL_VALUES = {
    "LangSmith": ("gen_ai.prompt", "gen_ai.completion"),
    "Logfire": ("request_data", "response_data"),
    "OpenInference": ("input.value", "output.value"),
}


def otel(spans, values="LangSmith"):
    kinds = {"model": "chat", "tool": "execute_tool", "agent": "invoke_agent"}

    def attributes(kind, name, given, returned):
        given, returned = or_none(given), or_none(returned)
        operation = {"gen_ai.operation.name": kinds.get(kind)}
        if kind == "tool":
            called = {"gen_ai.tool.call.arguments": given, "gen_ai.tool.call.result": returned}
            return {**operation, "gen_ai.tool.name": name, **called}
        return {**operation, **dict(zip(OTEL_VALUES[values], (given, returned), strict=True))}

    return OTelReader(), otlp(spans, attributes)


TRACERS = {
    "langfuse": langfuse,
    "langsmith": langsmith,
    "mlflow": mlflow,
    "openinference": openinference,
    "otel": otel,
    "logfire": lambda spans: otel(spans, "Logfire"),
}


def recorded(conversation, framework, tool_name=str):
    """The spans of a conversation: an agent, a model call for each answer, and the tools that it calls."""
    request, response = FRAMEWORKS[framework]
    spans = [("chain", "run", None, None, None)]
    for at, said in enumerate(conversation):
        if said[0] == "assistant":
            spans.append(("model", "chat", 0, request(conversation[:at]), response(*said[1:])))
            arguments = {identity: given for identity, _, given in said[2]}
        elif said[0] == "tool":
            spans.append(("tool", tool_name(said[2]), 0, arguments[said[1]], said[3]))
    return spans


def sampled(tracer, spans):
    reader, document = TRACERS[tracer](spans)
    assert reader.recognizes(document)
    [record] = reader.records(document)
    return reader.sample(record, 0).trace


def table(trace):
    """Every message as the conversation has it, with the call that each result answers in place of its id."""
    answered = pair_results(trace.messages).calls
    rows = []
    for index, message in enumerate(trace.messages):
        if message.role == "tool":
            caller = answered[index]
            call = trace.messages[caller.message].tool_calls[caller.position]
            rows.append(("tool", call.name, call.args, message.text))
        elif message.role == "assistant":
            rows.append(("assistant", message.text, [(call.name, call.args) for call in message.tool_calls]))
        else:
            rows.append((message.role, message.text))
    return rows


def expected(conversation):
    calls = {}
    rows = []
    for said in conversation:
        if said[0] == "assistant":
            calls = {identity: (name, given) for identity, name, given in said[2]}
            rows.append(("assistant", said[1], list(calls.values())))
        elif said[0] == "tool":
            rows.append(("tool", *calls[said[1]], said[3]))
        else:
            rows.append(said)
    return rows


PARALLEL = [
    ("system", "You help."),
    ("user", "Weather in Paris and Rome?"),
    ("assistant", "", [("c1", "get_weather", {"city": "Paris"}), ("c2", "get_weather", {"city": "Rome"})]),
    ("tool", "c1", "get_weather", "12C"),
    ("tool", "c2", "get_weather", "no such city"),
    ("assistant", "One moment.", [("c3", "list_cities", {})]),
    ("tool", "c3", "list_cities", "Roma"),
    ("assistant", "12C in Paris.", []),
    ("user", "Thanks. And Oslo?"),
    ("assistant", "", [("c4", "get_weather", {"city": "Oslo"})]),
    ("tool", "c4", "get_weather", "3C"),
    ("assistant", "3C.", []),
]


def test_a_framework_s_messages_are_read_behind_every_tracer():
    for framework, tracer in product(FRAMEWORKS, TRACERS):
        conversation = PARALLEL
        if framework == "LangChain, calls alone":
            conversation = [said if said[1] != "One moment." else ("assistant", "", said[2]) for said in PARALLEL]
        trace = sampled(tracer, recorded(conversation, framework))
        assert table(trace) == expected(conversation), (framework, tracer)
        assert (trace.children, trace.warnings) == ((), ()), (framework, tracer)


@st.composite
def conversations(draw):
    words = st.sampled_from(["one", "two", "three", "four"])
    conversation = [("system", "You help.")]
    for turn in range(draw(st.integers(1, 2))):
        conversation.append(("user", f"{draw(words)} {turn}?"))
        for step in range(draw(st.integers(0, 2))):
            names = draw(st.lists(st.sampled_from(["find", "get", "put"]), min_size=1, max_size=3))
            calls = [(f"c{turn}{step}{at}", name, {"n": at, "s": step}) for at, name in enumerate(names)]
            conversation.append(("assistant", draw(st.sampled_from(["", "Wait."])), calls))
            conversation += [("tool", identity, name, f"r{identity}") for identity, name, _ in calls]
        conversation.append(("assistant", f"{draw(words)} {turn}.", []))
    return conversation


@given(conversations(), st.sampled_from(sorted(FRAMEWORKS)), st.sampled_from(sorted(TRACERS)))
def test_any_conversation_is_read_behind_every_tracer(conversation, framework, tracer):
    if framework == "LangChain, calls alone":
        conversation = [
            ("assistant", "", said[2]) if said[0] == "assistant" and said[2] else said for said in conversation
        ]
    trace = sampled(tracer, recorded(conversation, framework))
    assert table(trace) == expected(conversation)
    assert (trace.children, trace.warnings) == ((), ())


FOUND = {
    # by hand: role, text, calls or the call that is answered
    "langfuse_vercel.json": [
        ("user", "Weather in Paris?"),
        ("assistant", "", [("getWeather", {"city": "Paris"})]),
        ("tool", "getWeather", {"city": "Paris"}, '{"t": 12}'),
    ],
    "langfuse_pydantic_ai.json": [
        ("system", "s"),
        ("user", "Where is order 7?"),
        ("assistant", "", [("find_order", {"id": 7})]),
        ("tool", "find_order", {"id": 7}, "sent"),
        ("assistant", "It was sent.", []),
    ],
    "langfuse_pydantic_ai_events.json": [("system", "You help."), ("user", "2+2?"), ("assistant", "4", [])],
    "langfuse_adk.json": [
        ("system", "Greet."),
        ("user", "hi"),
        ("assistant", "", [("say_hello", {})]),
        ("tool", "say_hello", {}, '{"greeting": "Hello"}'),
        ("assistant", "Hello to you!", []),
    ],
    "langfuse_langchain_python.json": [
        ("user", "Find x."),
        ("assistant", "", [("search", {"query": "x"})]),
        ("tool", "search", {"query": "x"}, "found"),
        ("assistant", "x was found.", []),
    ],
    "wrapper_span.json": [
        ("user", "clients?"),
        ("assistant", "", [("list_client", {"q": "x"})]),
        ("tool", "list_client", {"q": "x"}, '{"clients":["a"]}'),
        ("assistant", "Found", []),
    ],
}
AGENTS = {"langfuse_adk.json": "hello_agent", "wrapper_span.json": "agent"}


@pytest.mark.parametrize("name", FOUND)
def test_spans_of_frameworks_are_the_conversation_counted_by_hand(shared_data, name):
    [sample] = read(shared_data.parent / "found" / name, on_error="raise")
    trace = sample.trace
    assert table(trace) == FOUND[name]
    assert {said.agent for said in trace.messages if said.role == "assistant"} == {AGENTS.get(name)}
    assert (trace.children, trace.warnings) == ((), ())


# Line by line: spans of tools under other names than the calls.

WRAPPERS = {
    "server": "mcp__srv__{}".format,
    "suffix": "{}_impl".format,
    "case": str.upper,
    "other": lambda _: "ToolManager.handle_call",
    "operation": "execute_tool {}".format,
    "framework": "running tool: {}".format,
}


def test_a_span_under_another_name_is_the_call_with_its_arguments():
    guessed = (
        "spans of tools that have another name than the calls that they are taken for, and no arguments to compare"
    )
    for tracer, wrapper in product(TRACERS, WRAPPERS):
        trace = sampled(tracer, recorded(PARALLEL, "ADK", WRAPPERS[wrapper]))
        assert table(trace) == expected(PARALLEL), (tracer, wrapper)
        told = [warning.message for warning in trace.warnings]
        assert told == [f"{guessed}, found 1"] * (wrapper == "other"), (tracer, wrapper)


ASKED = ("user", "Who?")


def called(*calls):
    return ("assistant", "", [(f"c{number}", name, given) for number, (name, given) in enumerate(calls)])


def traced(calls, tools, tracer="openinference"):
    """Read the spans of calls in one answer, and of tools beside it, before a later answer that repeats no results."""
    spans = [("model", "chat", None, {"messages": [openai(ASKED)]}, openai(called(*calls)))]
    spans += [("tool", name, None, given, "r") for name, given in tools]
    reader, document = TRACERS[tracer](spans)
    if tracer == "openinference":
        for span in document:
            span["context"]["trace_id"] = "t"
    [record] = reader.records(document)
    return reader.sample(record, 0).trace


UNSURE = "spans of tools that may be calls under another name, or repeat calls; read as calls of their own, found {}"


@pytest.mark.parametrize(
    ("calls", "tools", "matched", "unsure"),
    [
        ([("f", {"a": 1})], [("server.f", {"a": 1})], 1, 0),
        ([("f", {"a": 1})], [("x", {"a": 1})], 1, 0),
        ([("f", {"a": 1})], [("x", {"a": 2})], 0, 0),  # other arguments: the code of the agent called it
        ([("f", {"a": 1})], [("x", {"name": "f", "arguments": {"a": 1}})], 1, 0),  # a wrapper
        ([("f", {"a": 1}), ("g", {"a": 1})], [("x", {"a": 1})], 0, 1),
        ([("f", {"a": 1}), ("g", {"a": 1})], [("mcp.G", {"a": 1}), ("mcp.F", {"a": 1})], 2, 0),
        ([("f", {"a": 1}), ("g", {"a": 1})], [("mcp.G", {"a": 1}), ("x", {"a": 1})], 2, 0),
        ([("f", {"a": 1}), ("f", {"a": 1})], [("x", {"a": 1}), ("x", {"a": 1})], 2, 0),
        ([("f", {"a": 1})], [("x", {"a": 1}), ("y", {"a": 1})], 0, 2),
        ([("f", {"a": 1})], [("f", {"a": 1}), ("mcp.f", {"a": 1})], 1, 1),  # recorded twice, or called twice
        ([("f", {})], [("f_impl", None)], 1, 0),
        ([("f", {})], [("x", None)], 0, 0),
    ],
)
def test_which_span_is_which_call(calls, tools, matched, unsure):
    trace = traced(calls, tools)
    assert len(trace.tool_calls()) == len(calls) + len(tools) - matched
    assert sum(message.role == "tool" for message in trace.messages) == len(tools)
    assert [warning.message for warning in trace.warnings] == [UNSURE.format(unsure)] * bool(unsure)


def test_spans_of_another_turn_are_other_calls():
    spans = [
        ("model", "chat", None, {"messages": [openai(ASKED)]}, openai(called(("f", {"a": 1})))),
        ("tool", "f", None, {"a": 1}, "r"),
        (
            "model",
            "chat",
            None,
            {"messages": [openai(ASKED), openai(called(("f", {"a": 1})))]},
            openai(called(("g", {"a": 2}))),
        ),
        ("tool", "x", None, {"a": 1}, "s"),
        ("tool", "y", None, {"a": 2}, "t"),
    ]
    reader, document = openinference(spans)
    [record] = reader.records(document)
    trace = reader.sample(record, 0).trace
    assert [(one.call.name, one.call.args) for one in trace.tool_calls()] == [
        ("f", {"a": 1}),
        ("g", {"a": 2}),
        ("x", {"a": 1}),
    ]


@pytest.mark.parametrize("tracer", TRACERS)
def test_calls_in_an_agent_s_output_are_those_of_its_tools(tracer):
    """Without model calls, the state of a graph holds the calls that the spans of tools hold too."""
    conversation = [said for said in PARALLEL if said[0] != "system"]
    whole = {"messages": [openai(said) for said in conversation]}
    tools = [
        (
            "tool",
            said[2],
            0,
            next(
                given
                for one in conversation
                if one[0] == "assistant"
                for identity, _, given in one[2]
                if identity == said[1]
            ),
            said[3],
        )
        for said in conversation
        if said[0] == "tool"
    ]
    if tracer in ("otel", "logfire"):
        pytest.skip("agents have messages of these conventions")
    trace = sampled(tracer, [("agent", "agent", None, {"messages": [openai(ASKED)]}, whole), *tools])
    assert [message for message in table(trace) if message != ASKED] == expected(conversation)


@pytest.mark.parametrize("tracer", TRACERS)
def test_spans_of_tools_stay_where_no_answer_is_read(tracer):
    spans = [("model", "chat", None, {"messages": [openai(ASKED)]}, None), ("tool", "f", None, {"a": 1}, "r")]
    trace = sampled(tracer, spans)
    assert [(one.call.name, one.call.args) for one in trace.tool_calls()] == [("f", {"a": 1})]
    assert trace.messages[-1].text == "r"


def test_messages_under_other_attributes_are_not_said_to_be_missing():
    span = {"gen_ai.operation.name": "chat", "vendor.llm.prompt": "Hi", "vendor.llm.output": "Hello"}
    spans = [{"trace_id": "t", "span_id": "a", "name": "chat", "attributes": span}]
    reader = OTelReader()
    [record] = reader.records(spans)
    problem = "although these attributes may hold some: 'vendor.llm.prompt', 'vendor.llm.output'"
    with pytest.raises(TraceError, match=problem):
        reader.sample(record, 0)


def node(name, inner=None):
    """The metadata of a run in a node of a supervisor's graph, and in a node of the agent there."""
    path = f"{name}:1" if inner is None else f"{name}:1|{inner}:2"
    return {"langgraph_node": inner or name, "langgraph_checkpoint_ns": path}


def supervised(tracer):
    """Spans of a supervisor with two workers, as LangGraph runs them; each has a prompt of its own."""
    lead, first, second = ("system", "You lead."), ("system", "You add."), ("system", "You search.")
    question = ("user", "1+2, and who?")
    to_adder = ("assistant", "", [("h1", "transfer_to_adder", {})])
    adding = ("assistant", "", [("c1", "add", {"a": 1, "b": 2})])
    added, back = (
        ("assistant", "3", []),
        ("assistant", "Transferring back", [("b1", "transfer_back_to_supervisor", {})]),
    )
    went, came = ("tool", "h1", "transfer_to_adder", "done"), ("tool", "b1", "transfer_back_to_supervisor", "done")
    to_finder = ("assistant", "", [("h2", "transfer_to_finder", {})])
    sent = ("tool", "h2", "transfer_to_finder", "done")
    finding, found = ("assistant", "", [("c2", "find", {"q": "who"})]), ("assistant", "She.", [])
    shared = [question, to_adder, went, added, back, came, to_finder]  # the last message of each worker
    steps = [
        ("agent", "supervisor", 0, node("supervisor")),
        ("model", [lead, question], to_adder, node("supervisor", "agent")),
        ("agent", "call_agent", 0, node("adder")),
        ("model", [first, question, to_adder, went], adding, node("adder", "agent")),
        ("tool", "add", {"a": 1, "b": 2}, "3", node("adder", "tools")),
        ("model", [first, question, to_adder, went, adding, ("tool", "c1", "add", "3")], added, node("adder", "agent")),
        ("agent", "supervisor", 0, node("supervisor")),
        ("model", [lead, *shared[:-1]], to_finder, node("supervisor", "agent")),
        ("agent", "call_agent", 0, node("finder")),
        ("model", [second, *shared, sent], finding, node("finder", "agent")),
        ("tool", "find", {"q": "who"}, "She", node("finder", "tools")),
        ("model", [second, *shared, sent, finding, ("tool", "c2", "find", "She")], found, node("finder", "agent")),
        ("agent", "supervisor", 0, node("supervisor")),
        ("model", [lead, *shared, sent, found], ("assistant", "3, and she.", []), node("supervisor", "agent")),
    ]
    spans, metadata, around = [("chain", "team", None, None, None)], [None], 0
    for kind, *rest in steps:
        if kind == "agent":
            around = len(spans)
            spans.append(("agent", rest[0], 0, None, None))
        elif kind == "model":
            asked = {"messages": [openai(said) | ({"name": "adder"} if said == back else {}) for said in rest[0]]}
            spans.append(("model", "ChatOpenAI", around, asked, openai(rest[1])))
        else:
            spans.append(("tool", rest[0], around, rest[1], rest[2]))
        metadata.append(rest[-1])
    reader, document = TRACERS[tracer](spans)
    records = document["data"]["spans"] if tracer == "mlflow" else document
    for record, about in zip(records, metadata, strict=True):
        if tracer == "langfuse":
            record["metadata"] = about
        elif tracer == "langsmith":
            record["extra"] = {"metadata": about}
        elif about is not None:
            record["attributes"]["metadata"] = json.dumps(about)
    [record] = reader.records(document)
    return reader.sample(record, 0).trace


@pytest.mark.parametrize("tracer", ["openinference", "langfuse", "langsmith", "mlflow", "otel"])
def test_the_agents_of_a_supervisor_have_their_own_names(tracer):
    trace = supervised(tracer)
    said = [
        (message.agent, [call.name for call in message.tool_calls])
        for message in trace.messages
        if message.role == "assistant"
    ]
    assert said == [
        ("supervisor", ["transfer_to_adder"]),
        ("adder", ["add"]),
        ("adder", []),
        ("adder", ["transfer_back_to_supervisor"]),
        ("supervisor", ["transfer_to_finder"]),
        ("finder", ["find"]),
        ("finder", []),
        ("supervisor", []),
    ]
    assert [message.text for message in trace.messages if message.role == "system"] == [
        "You lead.",
        "You add.",
        "You search.",
    ]
    assert (trace.children, trace.warnings) == ((), ())


def test_a_supervisor_that_keeps_only_last_messages_warns():
    def state(*worked):
        return [
            {"type": "human", "content": "1+2?"},
            {
                "type": "ai",
                "name": "supervisor",
                "content": "",
                "tool_calls": [{"name": "transfer_to_adder", "args": {}, "id": "h"}],
            },
            {"type": "tool", "content": "done", "tool_call_id": "h"},
            *worked,
            {"type": "ai", "name": "adder", "content": "3"},
            {
                "type": "ai",
                "name": "adder",
                "content": "Back",
                "tool_calls": [{"name": "transfer_back_to_supervisor", "args": {}, "id": "b"}],
            },
            {"type": "tool", "content": "done", "tool_call_id": "b"},
            {"type": "ai", "name": "supervisor", "content": "It is 3."},
        ]

    problem = (
        "no agent that hands back to its supervisor shows a tool call, and none is recorded with"
        ' output_mode="last_message"; use output_mode="full_history"'
    )
    adding = {"type": "ai", "name": "adder", "content": "", "tool_calls": [{"name": "add", "args": {}, "id": "c"}]}
    whole = state(adding, {"type": "tool", "content": "3", "tool_call_id": "c"})
    for messages, warnings in ((state(), [problem]), (whole, [])):
        trace = LangChainReader().sample(messages, 0).trace
        assert [warning.message for warning in trace.warnings] == warnings
