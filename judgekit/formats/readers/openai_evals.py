"""OpenAI's evals: output items of hosted runs, the items of their data, and the samples of the open-source evals.

{"object": "eval.run.output_item", "datasource_item": {"ticket": "..."}, "datasource_item_id": 0, "results": [{"name", "passed",
  "score", "type", "sample"}], "sample": {"input": [{"role", "content"}], "output": [{"role", "content"}], "model", "usage", ...}}
{"item": {"ticket": "..."}, "sample": {"output_text": "..."}}
{"object": "eval.run", "data_source": {"source": {"type": "file_content", "content": [{"item", "sample"}]}, "input_messages": ...}}
{"input": [{"role", "content"}], "ideal": "4"}    of the repository openai/evals, which also has ["4", "four"] and texts as input
"""

import re
from collections import Counter

from pydantic import JsonValue

from judgekit.errors import TraceError
from judgekit.formats.blocks.common import read_counts
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.label_sources import label_source
from judgekit.formats.readers.base import RowReader, as_records, build_row_sample, build_sample, group_name
from judgekit.formats.readers.payloads import Payload, exchange_messages, messages_in, take_payload
from judgekit.formats.row_facts import to_text
from judgekit.formats.unread import canonical_column
from judgekit.formats.values import as_object, is_number, lookup, objects_in, parse_if_json, str_or_none, without
from judgekit.traces.message import AIMessage, HumanMessage, JsonObject
from judgekit.traces.recording import Label, ToolDefinition
from judgekit.traces.sample import References, Sample
from judgekit.traces.sample_path import TextTemplate, ValuePath

_OUTPUT_ITEM, _RUN, _EVAL = "eval.run.output_item", "eval.run", "eval"
_BESIDE_ITEM = frozenset(("item", "sample", "id", *References.__annotations__)) - {"fields"}
_OF_SAMPLES = (frozenset(("input", "ideal")), frozenset(("messages", "ideal")))
_REFERENCES = frozenset(("reference", "references", "expected_output"))
_UUID = re.compile(r"-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
"""The suffix that the platform adds to the name of a grader."""
_COUNTS = {"input": "prompt_tokens", "output": "completion_tokens", "cached": "cached_tokens"}
_COMPUTED = ("string", "text", "python")
"""Prefixes of the types of graders that ask no model."""


class OpenAIEvalsReader(RowReader):
    """A reader of output items, runs that hold their data, items with or without a sample, and samples of openai/evals.

    Grades become labels, and the columns of an item become fields. An item without a sample has no agent message.
    """

    name = "openai-evals"
    shape = 'openai-evals: {"object": "eval.run.output_item", "datasource_item", "results", "sample"}; {"item", "sample"}; {"input", "ideal"} of openai/evals'

    def recognizes(self, value: JsonValue) -> bool:
        """Recognize records by ``object``, items by having little beside, and samples by ``ideal``."""
        row = next(iter(as_records(value)), None)
        if not isinstance(row, dict):
            return False
        if (kind := row.get("object")) is not None:  # as many records of other formats have it
            return kind in (_OUTPUT_ITEM, _RUN, _EVAL)
        if isinstance(row.get("testing_criteria"), list):
            return True
        if isinstance(row.get("item"), dict):
            return row.keys() <= _BESIDE_ITEM
        return any(names <= row.keys() for names in _OF_SAMPLES) and row.keys().isdisjoint(("response", "output"))

    def records(self, document: JsonValue) -> list[JsonValue]:
        """Return the records, and the items that runs hold."""
        return [record for row in as_records(document) for record in _items(row)]

    def sample(self, record: JsonValue, index: int) -> Sample:
        """Read one output item, item or sample."""
        row = FieldTracker.of(record)
        fields = as_object(record)
        has_graders = "object" not in fields and isinstance(fields.get("testing_criteria"), list)
        if fields.get("object") == _EVAL or has_graders:
            raise TraceError(
                "is the definition of an eval, which has graders and no samples; "
                "score its output items, with scorers in place of its graders"
            )
        if row.peek("object") == _OUTPUT_ITEM:
            return _output_item(row, index)
        return _item(row, index) if "item" in row else _sample_of_repository(row, index)


def _items(document: JsonValue) -> list[JsonValue]:
    """Return the items that a run holds, each with the run and its number; any other record as it is."""
    if not isinstance(document, dict) or document.get("object") != _RUN:
        return [document]
    source = as_object(lookup(document, "data_source", "source"))
    content = source.get("content")
    if not isinstance(content, list) or not content:
        raise TraceError(
            f"is a run whose data is not in the file (its source is {to_text(source.get('type'))}); "
            "save its output items: client.evals.runs.output_items.list(run_id, eval_id=eval_id)"
        )
    about: JsonObject = {**as_object(document["data_source"]), "source": without(source, "content")}
    run: JsonObject = {**document, "data_source": about}
    numbered = enumerate(content)
    return [{**row, "run": run, "number": number} if isinstance(row, dict) else row for number, row in numbered]


def _output_item(row: FieldTracker, index: int) -> Sample:
    row.take_if("object", _OUTPUT_ITEM)
    item = row.take("datasource_item") if isinstance(row.peek("datasource_item"), dict) else {}
    about = _Item(as_object(item), row, run_id=row.text("run_id"), eval_id=row.text("eval_id"))
    sample = row.object("sample") or FieldTracker({}, "sample", row.warnings)
    request = take_payload(sample, "input", HumanMessage)
    trace = {**about.conversation(sample, request), "labels": _labels(row)}
    return about.sample(trace, index, number=row.id("datasource_item_id"))


def _item(row: FieldTracker, index: int) -> Sample:
    """Read an item with or without a sample, alone or from a run."""
    if not isinstance(row.peek("item"), dict):
        raise row.type_error("item", "an object")
    run = row.object("run") or FieldTracker({}, "run", row.warnings)
    about = _Item(as_object(row.take("item")), row, run_id=run.text("id"), eval_id=run.text("eval_id"))
    run.take_if("object", _RUN)
    sample = row.object("sample")
    number = row.count("number")
    name = None if number is None else str(number)
    identity = None if name is None or about.run_id is None else f"{about.run_id}/{name}"
    request = Payload() if sample is None else take_payload(sample, "input", HumanMessage)
    request = request if request.messages else about.input(run)
    if sample is None:
        row.warn("the item has no sample, and so no answer")
        return about.sample({"messages": list(request.messages)}, index, identity=identity, number=name)
    return about.sample(about.conversation(sample, request), index, identity=identity, number=name)


class _Item:
    """An item of the data of an eval, and the record that holds it."""

    def __init__(self, columns: JsonObject, row: FieldTracker, *, run_id: str | None, eval_id: str | None) -> None:
        self.columns = columns
        self.row = row
        self.run_id = run_id
        self.eval_id = eval_id
        self.tools: list[ToolDefinition] = []

    def sample(
        self, trace: dict[str, object], index: int, *, number: str | None, identity: str | None = None
    ) -> Sample:
        """Return the sample. Output items of several runs about the same item are a group."""
        facts: dict[str, object] = {"fields": self.columns}
        if number is not None:
            facts["group"] = group_name(number, self.eval_id)
        if not any(name in self.row for name in _REFERENCES):
            facts |= self._references()
        ids = {"eval_id": self.eval_id, "run_id": self.run_id}
        metadata = {name: text for name, text in ids.items() if text is not None}
        trace = {**trace, "tools": self.tools, "metadata": metadata}
        return build_sample(self.row, index, trace, identity=identity, **facts)

    def _references(self) -> dict[str, object]:
        """Return the first column whose name says that it holds the expected output. It stays a field too."""
        for name, value in self.columns.items():
            if name in _REFERENCES or canonical_column(name) == "reference":
                if isinstance(value, str):
                    return {"reference": value}
                if isinstance(value, list) and value and all(isinstance(text, str) for text in value):
                    return {"references": value}
        return {}

    def input(self, run: FieldTracker) -> Payload:
        """Return what the model was asked: a run's messages, filled with the item, or else the item's own input."""
        source = run.object("data_source")
        messages = source.maybe_object("input_messages") if source else None
        template = None if messages is None else messages.peek("template")
        if messages is not None and isinstance(template, list):
            payload = messages_in([self._filled(message) for message in template], messages, "template", HumanMessage)
            if payload is not None:
                messages.take_if("type", "template")
                messages.take("template")
                return payload
        columns: list[str] = [name for name in ("input", "messages") if name in self.columns]
        columns += [name for name in self.columns if canonical_column(name) == "input"]
        if messages is not None and isinstance(whole := messages.peek("item_reference"), str):
            columns = [whole.removeprefix("item.")]
        for name in columns:
            payload = take_payload(FieldTracker(self.columns, "item", self.row.warnings), name, HumanMessage)
            if payload.messages:
                return payload
        return Payload()

    def _filled(self, value: JsonValue) -> JsonValue:
        """Return a message of a template with the item's values in their places."""
        if isinstance(value, list):
            return [self._filled(part) for part in value]
        if isinstance(value, dict):
            return {name: self._filled(field) for name, field in value.items()}
        if not isinstance(value, str) or "{{" not in value:
            return value
        try:
            return TextTemplate(value).fill(self._value)
        except ValueError:  # not a template of this platform
            return value

    def _value(self, path: ValuePath) -> JsonValue:
        return path.follow(self.columns) if path.root == "item" else f"{{{{ {path} }}}}"

    def conversation(self, sample: FieldTracker, request: Payload) -> dict[str, object]:
        """Return the conversation as fields of a trace, with a warning if it has no answer."""
        response = self._answer(sample)
        error = as_object(sample.peek("error"))
        failed = ": ".join(str(error[name]) for name in ("code", "message") if error.get(name))
        if failed:
            sample.warn(f"the request to the model failed: {failed}", "error")
        if not response.messages:
            sample.warn("contains no answer", "output")
        elif not any(reply.text or (isinstance(reply, AIMessage) and reply.tool_calls) for reply in response.messages):
            sample.warn(f"the answer is empty; it ended with {to_text(sample.peek('finish_reason'))}", "output")
        details: dict[str, object] = {}
        if response.messages:
            details["usage"] = read_counts(sample.object("usage"), **_COUNTS)
            details |= {"model": sample.text("model"), "finish_reason": sample.text("finish_reason")}
        messages, replies = exchange_messages(request, response, self.tools, **details)
        termination = f"error: {failed}" if failed else None
        return {"messages": [*messages, *replies], "termination": termination, "error": failed or None}

    def _answer(self, sample: FieldTracker) -> Payload:
        """Return what the model answered, in any of the places where these files hold it."""
        output = sample.peek("output")
        if isinstance(output, list):
            stated = [{k: v for k, v in message.items() if v is not None} for message in objects_in(output)]
            replies: list[JsonValue] = [{"role": "assistant", **reply} for reply in stated if reply.keys() - {"role"}]
            if replies and (payload := messages_in(replies, sample, "output", AIMessage)) is not None:
                if len(replies) == len(output):
                    sample.take("output")
                return payload
        for name in ("choices",) if isinstance(output, list) else ("output", "choices"):
            if sample.peek(name) and (payload := take_payload(sample, name, AIMessage)).messages:
                if sample.peek("output_text") == payload.messages[-1].text:
                    sample.take("output_text")
                return payload
        text, tools = sample.peek("output_text"), sample.peek("output_tools")
        if not isinstance(text, str) and isinstance(azure_text := self.columns.get("sample.output_text"), str):
            return Payload((AIMessage(azure_text),))  # as Azure writes it
        if isinstance(text, str) or tools:
            message: JsonObject = {"role": "assistant", "content": text, "tool_calls": tools or None}
            if (payload := messages_in([message], sample, "output_text", AIMessage)) is not None:
                if sample.peek("output_json") == parse_if_json(text):
                    sample.take("output_json")
                sample.take("output_text")
                sample.take("output_tools")
                return payload
        return Payload()


def _labels(row: FieldTracker) -> list[Label]:
    """Return a label for each result of a grader; the words of a model that graded are its reason."""
    results = row.objects("results")
    named = [name for grade in results if (name := str_or_none(grade.peek("name"))) is not None]
    shared = Counter(_UUID.sub("", name) for name in named)
    labels: list[Label] = []
    asks_model = False
    for grade in results:
        name = grade.text("name") or "score"
        plain = _UUID.sub("", name)
        value = grade.number("score") if is_number(grade.peek("score")) else grade.boolean("passed")
        if value is None:
            grade.warn("the grader gave no score")
            continue
        graded = grade.maybe_object("sample")
        replies = graded.optional_objects("output") if graded is not None else []
        asks_model = asks_model or (graded is not None and "input" in graded)
        kind = str_or_none(grade.peek("type")) or ""
        is_model = kind.startswith(("label", "score")) or (not kind and graded is not None)
        by_code = False if kind.startswith(_COMPUTED) else None
        source = label_source(plain, judged=True if is_model else by_code)
        annotator = graded.text("model") if graded is not None else None
        reason = replies[-1].text("content") if replies else grade.text("reason")
        name = plain if shared[plain] == 1 else name
        labels.append(Label(name, value, source=source, annotator=annotator, reason=reason))
    if asks_model:
        row.warn("the messages to graders are kept in extra", "results")
    return labels


def _sample_of_repository(row: FieldTracker, index: int) -> Sample:
    """Read a sample of openai/evals, whose answers are elsewhere: in the log of a run."""
    identity = row.id("id") or str(index)
    name = "messages" if "messages" in row else "input"
    request = take_payload(row, name, HumanMessage)
    ideal = row.take("ideal")
    facts = {"references": list(map(to_text, ideal))} if isinstance(ideal, list) else {"reference": to_text(ideal)}
    return build_row_sample(row, identity, list(request.messages), {} if ideal is None else facts, request.tools)
