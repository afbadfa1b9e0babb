r"""Results of promptfoo: whole evaluations, their results one per line, and tables.

{"evalId": "eval-1", "results": {"version": 3, "results": [{"id": "r1", "testIdx": 0, "prompt": {"raw": "2+2?", "label": "{{q}}"},
  "provider": {"id": "openai:gpt-5", "label": ""}, "vars": {"q": "2+2?"}, "response": {"output": "4", "tokenUsage": {...}},
  "success": true, "gradingResult": {"componentResults": [{"pass": true, "score": 1, "assertion": {"type": "equals", "value": "4"}}]},
  "testCase": {"assert": [...]}}]}, "config": {...}}
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from pydantic import JsonValue

from judgekit.errors import TraceError, short_repr
from judgekit.formats.blocks.common import read_counts
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.label_sources import combined_source, label_source
from judgekit.formats.readers.base import append_reply, as_records, build_sample, first_record
from judgekit.formats.readers.payloads import Payload, exchange_messages, messages_in, parse_structured_json
from judgekit.formats.readers.rows import take_value
from judgekit.formats.row_facts import to_text
from judgekit.formats.values import (
    as_list,
    as_object,
    is_number,
    lookup,
    objects_in,
    parse_if_json,
    str_or_none,
    without,
)
from judgekit.traces.message import AIMessage, HumanMessage, JsonObject, Message, SystemMessage, ToolCall, ToolMessage
from judgekit.traces.recording import Label, LabelSource, ToolDefinition
from judgekit.traces.sample import ExpectedCall, Sample

_ERROR = 2
"""The ``failureReason`` of a result without an answer that could be tested."""
_HUMAN = "human"
_MANUAL = "Manual result (overrides all other grading results)"
"""The reason of a whole result that a person rated."""
_GRADED_BY_MODELS = frozenset(
    (
        *("agent-rubric", "answer-relevance", "context-faithfulness", "context-recall", "context-relevance"),
        *("conversation-relevance", "factuality", "g-eval", "llm-rubric", "max-score", "model-graded-closedqa"),
        *("model-graded-factuality", "search-rubric", "select-best", "trajectory:goal-success"),
        *("classifier", "guardrails", "moderation", "pi"),
    )
)
_COMPARED_WITH_ANSWERS = frozenset(
    (
        *("bleu", "context-recall", "equals", "factuality", "gleu", "levenshtein", "meteor"),
        *("model-graded-factuality", "rouge-n", "similar", "similar:cosine", "similar:dot", "similar:euclidean"),
    )
)
"""Types of assertions whose values are answers. Those of others are parts of an answer, criteria or code."""
_PLACEHOLDER = re.compile(r"\{\{\s*([\w.]+)\s*\}\}")
_TEMPLATE = re.compile(r"\{[{%#]")
_FILE = re.compile(r"[^\s:]+\.\w+(:\w+)?: ")
"""The file of a prompt, at the beginning of its label."""
_HEADER = re.compile(r"\[(.+?)\] (.*)", re.DOTALL)
"""The header of an output in a table: its provider and the label of its prompt."""
_ESCAPED = re.compile(r"'[\s\u200b-\u200d]*[=@+-]")
"""A cell to which promptfoo added an apostrophe, so that spreadsheets do not take it for a formula."""
_CALLS = ("tool_use", "function_call")
_OF_CONFIG = ("description", "tags")
"""The parts of the configuration that each sample keeps."""
_MOST_OF_GROUP = 80


class PromptfooReader:
    """A reader of results, one sample per test, prompt and provider. Tests with equal variables are a group."""

    name = "promptfoo"
    joins_lines = False
    shape = 'promptfoo: {"evalId", "results": {"results": [{"testIdx", "prompt": {"raw", "label"}, "provider", "vars", "response"}]}}, or a result per line'

    def recognizes(self, value: JsonValue) -> bool:
        """Recognize results by their prompt and verdict, and rows of tables by their outputs."""
        first = first_record(value)
        whole = _is_result(first_record(_results(first))) or _is_configuration(first)
        return whole or _is_result(first) or _is_row(first)

    def records(self, document: JsonValue) -> list[JsonValue]:
        """Return the results, each with the facts of the whole evaluation."""
        return [record for one in as_records(document) for record in _records(one)]

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
        known = _references(row, grading, variables) | {
            "fields": variables,
            "group": _group(row, variables),
            "metadata": metadata,
        }
        _leave_out_shared(row)
        tools: list[ToolDefinition] = []
        messages = _messages(row, prompt, response, variables, tools)
        error = _error(row, response, messages)
        trace = {
            "messages": messages,
            "tools": tools,
            "labels": _labels(row, grading),
            "usage": read_counts(
                response.object("tokenUsage"),
                input="prompt",
                output="completion",
                cached="completionDetails.cacheReadInputTokens",
                reasoning="completionDetails.reasoning",
            ),
            "cost_usd": row.number("cost"),
            "termination": error and f"error: {error}",
            "metadata": {} if (latency := row.number("latencyMs")) is None else {"latencyMs": latency},
        }
        return build_sample(row, index, trace, identity=row.id("id"), **known)


def _is_result(value: JsonValue) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("prompt"), dict) or "provider" not in value:
        return False
    return "success" in value and not {"vars", "response", "gradingResult"}.isdisjoint(value)


def _is_row(value: JsonValue) -> bool:
    """Return whether a value is a row of a table, as `OutputColumns` nests it."""
    return isinstance(value, dict) and {"vars", "testIdx", "outputs"} <= value.keys()


def _results(document: JsonValue) -> JsonValue:
    """Return the results of an evaluation; ``None`` for any other value."""
    found = lookup(document, "results")
    return found.get("results") if isinstance(found, dict) else found


def _is_configuration(value: JsonValue) -> bool:
    return isinstance(value, dict) and {"prompts", "providers", "tests"} <= value.keys() and "results" not in value


def _records(document: JsonValue) -> Iterator[JsonValue]:
    if _is_configuration(document):
        raise TraceError("holds the tests, not their results; run: promptfoo eval -o results.json")
    if isinstance(document, dict) and _is_row(document):
        yield from _outputs(document)
    elif isinstance(document, dict) and isinstance(results := _results(document), list) and not _is_result(document):
        about = without(document, "results")
        if isinstance(inner := document["results"], dict):
            about["results"] = without(inner, "results")
        for result in results:
            yield {**result, "evaluation": about} if isinstance(result, dict) else result
    else:
        yield document


def _outputs(row: JsonObject) -> Iterator[JsonValue]:
    """Yield the results in a row of a table, in the form of other files."""
    cells = {name: _cell(value) for name, value in as_object(row["vars"]).items()}
    description = cells.pop("Description", None)
    tested = [(number, one) for number, one in enumerate(objects_in(row["outputs"])) if one.get("Status")]
    if not tested:
        raise TraceError("the row has no output with a status")
    for number, one in tested:
        named = _HEADER.fullmatch(to_text(one.get("header")))
        provider, label = named.groups() if named else ("", to_text(one.get("header")))
        status, named_scores = one.get("Status"), as_object(parse_if_json(one.get("Named Scores")))
        metrics = {name[8:]: parse_if_json(one[name]) for name in one if name.startswith("Metric: ")}
        rounded = {
            name: to_text(parse_if_json(f"{value:.2f}")) for name, value in named_scores.items() if is_number(value)
        }
        output = _cell(one.get("output"))
        grading: JsonObject = {"reason": _cell(one.get("Grader Reason")), "comment": _cell(one.get("Comment"))}
        yield {
            **without(row, "vars", "outputs"),
            "promptIdx": number,
            "vars": {name: cell for name, cell in cells.items() if cell != ""},
            "prompt": {"label": label, "filled": _filled_label(label, cells)},
            "provider": {"label": provider},
            "response": {"output": None if status == "ERROR" and not output else output},
            "success": status == "PASS",
            "score": parse_if_json(one.get("Score")),
            "namedScores": {**metrics, **named_scores},
            "metrics": {name: one for name, one in metrics.items() if rounded.get(name) != to_text(one)} or None,
            "gradingResult": grading,
            "failureReason": {"PASS": 0, "FAIL": 1, "ERROR": _ERROR}.get(to_text(status), status),
            "testCase": {"description": description},
        }


def _cell(value: JsonValue) -> JsonValue:
    return value[1:] if isinstance(value, str) and _ESCAPED.match(value) else value


def _variables(row: FieldTracker) -> JsonObject:
    """Take the variables of a test. Those of imported OpenAI evals are the columns of an item."""
    found = row.object("vars")
    variables = as_object(lookup(row.peek("testCase"), "vars")) if found is None else found.leftover()
    item = variables.get("item")
    return item if isinstance(item, dict) and len(variables) == 1 else variables


def _agent(row: FieldTracker, prompt: FieldTracker) -> JsonObject:
    """Return which variant gave the answer: a provider with a prompt."""
    if isinstance(row.peek("provider"), str):
        provider: JsonValue = row.take("provider")
    else:
        found = row.object("provider") or FieldTracker({})
        provider = found.text("label" if found.peek("label") else "id")
    agent: JsonObject = {"provider": provider, "prompt": prompt.peek("label") or prompt.peek("id")}
    return {"agent": {name: one for name, one in agent.items() if isinstance(one, str) and one}}


def _metadata(row: FieldTracker, of_response: JsonObject) -> JsonObject:
    """Return the metadata of the test, of which promptfoo's copy also holds that of the response."""
    found = row.object("metadata") or FieldTracker({})
    for name in found:
        if name in of_response and of_response[name] == found.peek(name):
            found.take(name)
    if found.peek("_promptfooFileMetadata") == {}:
        found.take("_promptfooFileMetadata")
    described = lookup(row.peek("testCase"), "description") or row.peek("description")
    own: JsonObject = {"description": described} if isinstance(described, str) and described else {}
    return {**own, **{name: found.take(name) for name in found if name != "openai"}}  # a copy of the imported record


def _leave_out_shared(row: FieldTracker) -> None:
    """Leave out what each result would repeat of the whole evaluation."""
    evaluation = row.object("evaluation") or FieldTracker({})
    config = evaluation.maybe_object("config") or FieldTracker({})
    summary = evaluation.maybe_object("results") or FieldTracker({})
    if [name for name in config if name not in _OF_CONFIG and config.take(name)]:
        row.warn("the configuration is left out; each result has its own test", "config")
    for holder, name, path, reason in (
        (summary, "prompts", "results.prompts", "all prompts and their totals are left out; each result has its own"),
        (summary, "table", "results.table", "the table is left out; it repeats the results"),
        (evaluation, "prompts", "prompts", "all prompts and their totals are left out; each result has its own"),
        (evaluation, "traces", "traces", "traces of spans are not read"),
        (evaluation, "blobAssets", "blobAssets", "files beside the results are left out"),
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
    row: FieldTracker,
    prompt: FieldTracker,
    response: FieldTracker,
    variables: JsonObject,
    tools: list[ToolDefinition],
) -> list[Message]:
    metadata = response.object("metadata") or FieldTracker({}, "response.metadata", row.warnings)
    if (recorded := _conversation(prompt, response, metadata)) is not None:
        return recorded
    asked = _asked(prompt, variables)
    answered = _answered(response)
    about = {"model": metadata.text("model"), "finish_reason": response.text("finishReason")}
    messages, replies = exchange_messages(asked, answered, tools, **about)
    return append_reply(messages, [*_calls(metadata), *replies], row)


def _conversation(prompt: FieldTracker, response: FieldTracker, metadata: FieldTracker) -> list[Message] | None:
    """Return the conversation of a simulated user or an attacker, whose end is the output; ``None`` without one."""
    said = objects_in(metadata.peek("messages"))
    if not any(one.get("role") == "user" for one in said):
        return None
    output = response.peek("output")
    script = "\n---\n".join(
        f"{'Assistant' if one.get('role') == 'assistant' else 'User'}: {to_text(one.get('content'))}" for one in said
    )
    is_simulated = output == script
    if not is_simulated and (said[-1].get("role"), said[-1].get("content")) != ("assistant", output):
        return None
    messages: list[Message] = []
    with suppress(TraceError):
        payload = messages_in(metadata.peek("messages"), metadata, "messages", HumanMessage)
        messages = [] if payload is None or payload.extra else list(payload.messages)
    if not messages:
        return None
    metadata.take("messages")
    response.take("output")
    if is_simulated and (instructions := prompt.text("raw")):
        return [SystemMessage(instructions), *messages]
    return messages


def _asked(prompt: FieldTracker, variables: JsonObject) -> Payload:
    raw = prompt.peek("raw")
    if raw is None:
        return _asked_in_table(prompt, variables)
    if isinstance(raw, str) and raw.lstrip().startswith("- role:"):
        prompt.warn("messages in YAML, read as the text of one message", "raw")
    with suppress(TraceError):  # a text that only looks like messages
        payload = messages_in(parse_structured_json(raw), prompt, "raw", HumanMessage)
        if payload is not None and payload.messages:
            prompt.take("raw")
            return payload
    return take_value(prompt, "raw", HumanMessage)


def _asked_in_table(prompt: FieldTracker, variables: JsonObject) -> Payload:
    """Return what the user asked, of which a table has the variables and the prompt's label."""
    text = prompt.take("filled")
    if text is not None:
        prompt.warn("a table has no prompts; read the label with the variables filled in", "label")
        with suppress(TraceError):
            payload = messages_in(text, prompt, "label", HumanMessage)
            if payload is not None and payload.messages:
                return payload
        return Payload((HumanMessage(to_text(text)),))
    name = "input" if "input" in variables else next(iter(variables)) if len(variables) == 1 else None
    if name is None:
        hint = "write the results as .json, or name the variable that the user said: --column question=input"
        prompt.warn(f"a table has no prompts, and the label cannot be filled in; {hint}", "label")
        return Payload()
    prompt.warn(f"a table has no prompts, and the label cannot be filled in; read the variable {name!r}", "label")
    return Payload((HumanMessage(to_text(variables[name])),))


def _filled_label(label: str, variables: JsonObject) -> JsonValue:
    """Return the label of a prompt with the variables filled in; ``None`` if it is no template."""
    template = _FILE.sub("", label, count=1)
    filled = _filled(parse_structured_json(template), variables)
    return filled if _PLACEHOLDER.search(template) or not variables else None


def _filled(template: JsonValue, variables: JsonObject) -> JsonValue:
    """Return a template with its variables filled in; ``None`` if it has more than plain variables."""
    if isinstance(template, dict):
        filled = {name: _filled(one, variables) for name, one in template.items()}
        return None if any(one is None for one in filled.values()) else filled
    if isinstance(template, list):
        items = [_filled(one, variables) for one in template]
        return None if None in items else items
    if not isinstance(template, str):
        return template
    found = {path: lookup(variables, *path.split(".")) for path in _PLACEHOLDER.findall(template)}
    if None in found.values() or _TEMPLATE.search(_PLACEHOLDER.sub("", template)):
        return None
    return _PLACEHOLDER.sub(lambda match: to_text(found[match[1]]), template)


def _answered(response: FieldTracker) -> Payload:
    output = response.peek("output")
    if output is None:
        return Payload()
    if isinstance(output, str):
        payload = None
        with suppress(TraceError):
            payload = messages_in(_blocks(output), response, "output", AIMessage)
        response.take("output")
        return payload or Payload((AIMessage(output),))
    if isinstance(output, dict) and isinstance(output.get("name"), str) and "arguments" in output:
        response.take("output")
        return Payload((AIMessage(tool_calls=[ToolCall.recorded(str(output["name"]), output["arguments"])]),))
    return take_value(response, "output", AIMessage)


def _blocks(output: str) -> JsonValue:
    """Return the calls in a text, and the text around them, as a reply; ``None`` if there are no calls.

    promptfoo joins the texts and calls of a reply, each call as a line of JSON. A table has all outputs as text.
    """
    whole = parse_structured_json(output)
    if isinstance(whole, list) and whole and all(map(_is_call, whole)):
        return whole
    if isinstance(whole, dict) and isinstance(whole.get("tool_calls"), list) and whole.get("role") == "assistant":
        return whole
    if not any(kind in output for kind in _CALLS):
        return None
    items: list[JsonValue] = []
    text: list[str] = []
    for line in [*output.splitlines(), None]:
        call = as_object(parse_if_json(line)) if line is not None and line.startswith("{") else {}
        if line is not None and call.get("type") not in _CALLS:
            text.append(line)
            continue
        if said := "\n".join(text).strip():
            items.append({"type": "text", "text": said})
        text = []
        if call:
            items.append(call)
    kinds = {to_text(lookup(one, "type")) for one in items} - {"text"}
    if "function_call" not in kinds:
        return [{"role": "assistant", "content": items}] if kinds else None
    return {"object": "response", "output": [_output_item(one) for one in items]}


def _is_call(value: JsonValue) -> bool:
    return isinstance(lookup(value, "function"), dict) or lookup(value, "type") in _CALLS


def _output_item(item: JsonValue) -> JsonValue:
    """Return a text as OpenAI's Responses API writes it, and a call as it is."""
    if (text := lookup(item, "text")) is None:
        return item
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def _calls(metadata: FieldTracker) -> list[Message]:
    """Return the calls that a coding agent made before its answer, with their results."""
    messages: list[Message] = []
    found = metadata.peek("toolCalls")
    if not all(isinstance(lookup(one, "name"), str) for one in as_list(found)):
        return messages
    for call in metadata.optional_objects("toolCalls"):
        name, identity, result = call.text("name") or "", call.id("id"), call.take("output")
        failed = call.boolean("is_error")
        made = ToolCall.recorded(name, call.take("input"), id=identity)
        messages.append(AIMessage(tool_calls=[made.model_copy(update={"extra": call.leftover()})]))
        if result is not None:
            said = ToolMessage(to_text(result), tool_call_id=identity, name=name, is_error=failed)
            messages.append(said)
    return messages


def _error(row: FieldTracker, response: FieldTracker, messages: Sequence[Message]) -> str | None:
    """Return the error that a result ended with, if it did. A warning names it, and an answer that is missing."""
    answered = any(isinstance(message, AIMessage) for message in messages)
    recorded = response.peek("error") or (row.peek("error") if row.peek("failureReason") == _ERROR else None)
    if recorded is None and row.peek("failureReason") != _ERROR:
        if not answered:
            row.warn("contains no answer", "response")
        return None
    error = to_text(recorded) if recorded is not None else "not recorded"
    row.warn(f"{'ended with an error' if answered else 'contains no answer'}: {short_repr(error)}", "response")
    return error


def _assertions(row: FieldTracker, grading: FieldTracker) -> Iterator[JsonObject]:
    """Yield the assertions of a test, including those in sets."""
    found = objects_in(lookup(row.peek("testCase"), "assert"))
    found = found or [as_object(one.get("assertion")) for one in objects_in(grading.peek("componentResults"))]
    for one in found:
        yield from objects_in(one.get("assert")) if one.get("type") == "assert-set" else [one]


def _references(row: FieldTracker, grading: FieldTracker, variables: JsonObject) -> dict[str, object]:
    """Return what the assertions expect. Values are templates, which promptfoo keeps as they are."""
    rendered = {
        (to_text(lookup(one, "assertion", "type")), to_text(lookup(one, "assertion", "value"))): value
        for one in objects_in(grading.peek("componentResults"))
        if (value := lookup(one, "metadata", "renderedAssertionValue")) is not None
    }
    answers: dict[str, None] = {}
    known: dict[str, object] = {}
    for assertion in _assertions(row, grading):
        kind, written = to_text(assertion.get("type")), assertion.get("value")
        value = rendered.get((kind, to_text(written)), _filled(written, variables))
        if kind in _COMPARED_WITH_ANSWERS:
            if value is None and written is not None:
                row.warn(f"the expected value of {kind!r} is a template that cannot be filled in", "testCase.assert")
            for one in as_records(value):
                if one is not None and not to_text(one).startswith("file://"):
                    answers[to_text(one)] = None
        elif kind == "tool-call-f1" and value is not None:
            names = [one.strip() for one in value.split(",")] if isinstance(value, str) else as_list(value)
            expected = [ExpectedCall(one, compare_args=()) for one in names if isinstance(one, str) and one]
            known["reference_tool_calls"] = expected
        elif kind.startswith("context-") and (context := variables.get("context")) is not None:
            known["documents"] = [to_text(one) for one in as_records(context)]
    found = list(answers)
    if found:
        known |= {"reference": found[0]} if len(found) == 1 else {"references": found}
    return known


def _labels(row: FieldTracker, grading: FieldTracker) -> list[Label]:
    """Return a label for each assertion and named score, and for the whole result."""
    labels: dict[str, Label] = {}
    grader = lookup(row.peek("testCase"), "options", "provider")
    for component in grading.optional_objects("componentResults"):
        if (label := _component_label(component, labels, grader)) is not None:
            labels[label.name] = label
    for name, value in _named_scores(row, grading).items():
        if name not in labels and is_number(value) and isinstance(value, int | float):
            labels[name] = Label(name, value, source=label_source(name))
    if row.peek("failureReason") == _ERROR:
        if "score" in row:
            row.warn("not a label, since the result is an error; kept as is", "score")
        return list(labels.values())
    if not (labels or grading.peek("reason")):
        return []
    by_person = grading.peek("reason") == _MANUAL
    source = "human" if by_person else combined_source(one.source for one in labels.values())
    reason = (by_person and str_or_none(grading.peek("comment"))) or str_or_none(grading.peek("reason"))
    for name, value in (("success", row.boolean("success")), ("score", row.number("score"))):
        if value is not None:
            labels.setdefault(name, Label(name, value, source=source, reason=reason))
    return list(labels.values())


def _component_label(component: FieldTracker, known: Mapping[str, Label], grader: JsonValue) -> Label | None:
    assertion, about = as_object(component.peek("assertion")), as_object(component.peek("metadata"))
    if about.get("graderError") is True:
        component.warn(f"the grader failed: {short_repr(component.peek('reason'))}; its score is not a label", "score")
        return None
    kind = to_text(assertion.get("type") or "")
    names = (assertion.get("metric"), kind, about.get("openaiGraderName"), lookup(about, "assertionSet", "metric"))
    name = next(
        (one for one in names if isinstance(one, str) and one), "assert-set" if "assertionSet" in about else "score"
    )
    if name in known:
        name = next(f"{name}{number}" for number in range(2, len(known) + 3) if f"{name}{number}" not in known)
    source = _source(kind, name, component, about)
    grade = about.get("openaiGrade")
    value = grade if is_number(grade) and isinstance(grade, int | float) else component.number("score")
    if value is None:
        value = component.boolean("pass")
    if value is None:
        return None
    annotator = None
    if source == "judge":
        model = str_or_none(lookup(about, "openaiGraderSample", "model"))
        annotator = _provider_name(assertion.get("provider")) or model or _provider_name(grader)
    reason = str_or_none(component.peek("comment")) or component.text("reason")
    return Label(name, value, source=source, annotator=annotator, reason=reason)


def _source(kind: str, name: str, component: FieldTracker, about: JsonObject) -> LabelSource:
    if kind == _HUMAN:
        return "human"
    if kind:
        base = kind.removeprefix("not-")
        return label_source(name, judged=base in _GRADED_BY_MODELS or base.startswith("promptfoo:redteam:"))
    if "openaiGraderName" in about:
        return label_source(name, judged=True if "openaiGraderSample" in about else None)
    inner = objects_in(component.peek("componentResults"))
    kinds = [to_text(lookup(one, "assertion", "type")) for one in inner]
    return combined_source(_source(one, name, component, {}) for one in kinds if one)


def _provider_name(provider: JsonValue) -> str | None:
    return str_or_none(provider) or str_or_none(lookup(provider, "label")) or str_or_none(lookup(provider, "id"))


def _named_scores(row: FieldTracker, grading: FieldTracker) -> JsonObject:
    return {**as_object(grading.peek("namedScores")), **as_object(row.peek("namedScores"))}
