"""Results of promptfoo: whole evaluations, and their results one per line.

{"evalId": "eval-1", "results": {"version": 3, "results": [{"id": "r1", "testIdx": 0, "prompt": {"raw": "2+2?", "label": "{{q}}"},
  "provider": {"id": "openai:gpt-5", "label": ""}, "vars": {"q": "2+2?"}, "response": {"output": "4", "tokenUsage": {...}},
  "success": true, "gradingResult": {"componentResults": [{"pass": true, "score": 1, "assertion": {"type": "equals", "value": "4"}}]},
  "testCase": {"assert": [...]}}]}, "config": {...}}
"""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import suppress

from pydantic import JsonValue

from judgekit.errors import TraceError
from judgekit.formats.blocks.common import read_call, read_counts
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.readers.base import RowReader, append_reply, as_records, build_sample, first_record
from judgekit.formats.readers.payloads import Payload, exchange_messages, messages_in, warn_of_outcome
from judgekit.formats.readers.promptfoo_grading import ERROR, read_labels, read_references
from judgekit.formats.readers.rows import take_value
from judgekit.formats.row_facts import to_text
from judgekit.formats.values import as_object, lookup, objects_in, parse_if_json, unpacked, without
from judgekit.traces.message import AIMessage, HumanMessage, JsonObject, Message, SystemMessage, ToolCall
from judgekit.traces.recording import ToolDefinition
from judgekit.traces.sample import Sample

_CALLS = ("tool_use", "function_call")
_MOST_OF_GROUP = 80


class PromptfooReader(RowReader):
    """A reader of results, one sample per test, prompt and provider. Tests with equal variables are a group."""

    name = "promptfoo"
    shape = 'promptfoo: {"evalId", "results": {"results": [{"testIdx", "prompt": {"raw", "label"}, "provider", "vars", "response"}]}}, or a result per line'

    def recognizes(self, value: JsonValue) -> bool:
        """Recognize results by their prompt and verdict."""
        first = first_record(value)
        return _is_result(first_record(_results(first))) or _is_configuration(first) or _is_result(first)

    def records(self, document: JsonValue) -> list[JsonValue]:
        """Return the results, each with the facts of the whole evaluation."""
        return [record for row in as_records(document) for record in _records(row)]

    def sample(self, record: JsonValue, index: int) -> Sample:
        """Read one result. Assertions become labels, and the answers that they compare with become references."""
        row = FieldTracker.of(record)
        prompt = row.object("prompt")
        if prompt is None:
            raise row.type_error("prompt", "an object with the prompt's text")
        response = row.object("response") or FieldTracker({}, "response", row.warnings)
        variables = _variables(row)
        grading = row.object("gradingResult") or FieldTracker({}, "gradingResult", row.warnings)
        metadata = {**_agent(row, prompt), **_metadata(row, as_object(response.peek("metadata")))}
        facts = read_references(row, grading, variables)
        facts |= {"fields": variables, "group": _group(row, variables), "metadata": metadata}
        _leave_out_shared(row)
        tools: list[ToolDefinition] = []
        messages = _messages(row, prompt, response, tools)
        error = _error(row, response, messages)
        trace = {
            "messages": messages,
            "tools": tools,
            "labels": read_labels(row, grading),
            "usage": read_counts(
                response.object("tokenUsage"),
                input="prompt",
                output="completion",
                cached="completionDetails.cacheReadInputTokens",
                reasoning="completionDetails.reasoning",
            ),
            "cost_usd": row.number("cost"),
            "termination": error and f"error: {error}",
            "error": error,
            "metadata": {} if (latency := row.number("latencyMs")) is None else {"latencyMs": latency},
        }
        return build_sample(row, index, trace, identity=row.id("id"), **facts)


def _is_result(value: JsonValue) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("prompt"), dict) or "provider" not in value:
        return False
    return "success" in value and not {"vars", "response", "gradingResult"}.isdisjoint(value)


def _results(document: JsonValue) -> JsonValue:
    results = lookup(document, "results")
    return results.get("results") if isinstance(results, dict) else results


def _is_configuration(value: JsonValue) -> bool:
    return isinstance(value, dict) and {"prompts", "providers", "tests"} <= value.keys() and "results" not in value


def _records(document: JsonValue) -> Iterator[JsonValue]:
    if _is_configuration(document):
        raise TraceError("holds the tests, not their results; run: promptfoo eval -o results.json")
    if isinstance(document, dict) and isinstance(results := _results(document), list) and not _is_result(document):
        about = without(document, "results")
        if isinstance(inner := document["results"], dict):
            about["results"] = without(inner, "results")
        for result in results:
            yield {**result, "evaluation": about} if isinstance(result, dict) else result
    else:
        yield document


def _variables(row: FieldTracker) -> JsonObject:
    """Take the variables of a test. Those of imported OpenAI evals are the columns of an item."""
    own = row.object("vars")
    variables = as_object(lookup(row.peek("testCase"), "vars")) if own is None else own.leftover()
    columns = variables.get("item")
    return columns if isinstance(columns, dict) and len(variables) == 1 else variables


def _agent(row: FieldTracker, prompt: FieldTracker) -> JsonObject:
    """Return which variant gave the answer: a provider with a prompt."""
    if isinstance(row.peek("provider"), str):
        provider: JsonValue = row.take("provider")
    else:
        named = row.object("provider") or FieldTracker({})
        provider = named.text("label" if named.peek("label") else "id")
    agent: JsonObject = {"provider": provider, "prompt": prompt.peek("label") or prompt.peek("id")}
    return {"agent": {side: name for side, name in agent.items() if isinstance(name, str) and name}}


def _metadata(row: FieldTracker, of_response: JsonObject) -> JsonObject:
    """Return the metadata of the test, of which promptfoo's copy also holds that of the response."""
    recorded = row.object("metadata") or FieldTracker({})
    for name in recorded:
        recorded.take_if(name, of_response.get(name))
    recorded.take_if("_promptfooFileMetadata", {})
    described = lookup(row.peek("testCase"), "description") or row.peek("description")
    own: JsonObject = {"description": described} if isinstance(described, str) and described else {}
    own |= {name: recorded.take(name) for name in recorded if name != "openai"}  # a copy of the imported record
    return own


def _leave_out_shared(row: FieldTracker) -> None:
    """Leave out what each result would repeat of the whole evaluation."""
    evaluation = row.object("evaluation") or FieldTracker({})
    config = evaluation.maybe_object("config") or FieldTracker({})
    summary = evaluation.maybe_object("results") or FieldTracker({})
    if [name for name in config if name not in ("description", "tags") and config.take(name)]:
        row.warn("the configuration is left out; each result has its own test", "config")
    for holder, name, path, reason in (
        (summary, "prompts", "results.prompts", "all prompts and their totals are left out; each result has its own"),
        (summary, "table", "results.table", "the table is left out; it repeats the results"),
        (evaluation, "prompts", "prompts", "all prompts and their totals are left out; each result has its own"),
        (evaluation, "traces", "traces", "traces of spans are not read"),
        (evaluation, "blobAssets", "blobAssets", "files next to the results are left out"),
    ):
        if holder.take(name):
            row.warn(reason, path)


def _group(row: FieldTracker, variables: JsonObject) -> str | None:
    """Return the name of the task. Repeated tests have numbers of their own, but equal variables."""
    given = {name: value for name, value in variables.items() if value != "" and not name.startswith("_")}
    named = [f"{name}={to_text(value)}" for name, value in given.items()]
    if not named:
        return None if (number := row.peek("testIdx")) is None else f"test {to_text(number)}"
    text = ", ".join(named)
    if len(text) <= _MOST_OF_GROUP:
        return text
    return f"{text[:_MOST_OF_GROUP]}... {hashlib.sha256(text.encode(errors='replace')).hexdigest()[:12]}"


def _messages(
    row: FieldTracker, prompt: FieldTracker, response: FieldTracker, tools: list[ToolDefinition]
) -> list[Message]:
    metadata = response.object("metadata") or FieldTracker({}, "response.metadata", row.warnings)
    if (recorded := _conversation(prompt, response, metadata)) is not None:
        return recorded
    request, answer = _request(prompt), _answer(response)
    about = {"model": metadata.text("model"), "finish_reason": response.text("finishReason")}
    messages, replies = exchange_messages(request, answer, tools, **about)
    return append_reply(messages, replies, row)


def _conversation(prompt: FieldTracker, response: FieldTracker, metadata: FieldTracker) -> list[Message] | None:
    """Return the conversation of a simulated user or an attacker, whose end is the output; ``None`` without one."""
    turns = [(turn.get("role"), turn.get("content")) for turn in objects_in(metadata.peek("messages"))]
    if not any(role == "user" for role, _ in turns):
        return None
    output = response.peek("output")
    script = [f"{'Assistant' if role == 'assistant' else 'User'}: {to_text(content)}" for role, content in turns]
    is_simulated = output == "\n---\n".join(script)
    if not is_simulated and turns[-1] != ("assistant", output):
        return None
    payload = None
    with suppress(TraceError):
        payload = messages_in(metadata.peek("messages"), metadata, "messages", HumanMessage)
    if payload is None or payload.extra or not payload.messages:
        return None
    metadata.take("messages")
    response.take("output")
    instructions = prompt.text("raw") if is_simulated else None
    return [*([SystemMessage(instructions)] if instructions else ()), *payload.messages]


def _request(prompt: FieldTracker) -> Payload:
    raw = prompt.peek("raw")
    if isinstance(raw, str) and raw.lstrip().startswith("- role:"):
        prompt.warn("messages in YAML, read as the text of one message", "raw")
    with suppress(TraceError):  # a text that only looks like messages
        payload = messages_in(unpacked(raw), prompt, "raw", HumanMessage)
        if payload is not None and payload.messages:
            prompt.take("raw")
            return payload
    return take_value(prompt, "raw", HumanMessage)


def _answer(response: FieldTracker) -> Payload:
    output = response.peek("output")
    if output is None:
        return Payload()
    if isinstance(output, str):
        response.take("output")
        with suppress(TraceError):
            return messages_in(_whole(output), response, "output", AIMessage) or Payload((_with_calls(output),))
        return Payload((AIMessage(output),))
    if isinstance(output, dict) and isinstance(output.get("name"), str) and "arguments" in output:
        response.take("output")
        return Payload((AIMessage(tool_calls=[ToolCall.recorded(str(output["name"]), output["arguments"])]),))
    return take_value(response, "output", AIMessage)


def _whole(output: str) -> JsonValue:
    """Return a reply or calls that are written as JSON; ``None`` if a text is neither."""
    whole = unpacked(output)
    calls = whole if isinstance(whole, list) else []
    if calls and all(isinstance(lookup(call, "function"), dict) or lookup(call, "type") in _CALLS for call in calls):
        return calls
    is_reply = isinstance(lookup(whole, "tool_calls"), list) and lookup(whole, "role") == "assistant"
    return whole if is_reply else None


def _with_calls(output: str) -> AIMessage:
    """Return a text as a message. promptfoo joins the texts and calls of a reply, each call as a line of JSON."""
    lines = [(line, as_object(parse_if_json(line)) if line.startswith("{") else {}) for line in output.splitlines()]
    calls = [FieldTracker(without(line, "type")) for _, line in lines if line.get("type") in _CALLS]
    if not calls:
        return AIMessage(output)
    text = "\n".join(text for text, line in lines if line.get("type") not in _CALLS).strip()
    return AIMessage(
        text, tool_calls=[read_call(call, ids=("call_id", "id"), args=("input", "arguments")) for call in calls]
    )


def _error(row: FieldTracker, response: FieldTracker, messages: Sequence[Message]) -> str | None:
    """Return the error that a result ended with, if it did. A warning names it, and an answer that is missing."""
    answered = any(isinstance(message, AIMessage) for message in messages)
    failed = row.peek("failureReason") == ERROR
    recorded = response.peek("error") or (row.peek("error") if failed else None)
    error = to_text(recorded) if recorded is not None else "not recorded" if failed else None
    warn_of_outcome(row, error, "response", "response", answered=answered)
    return error
