"""OpenAI's evals: output items of hosted runs, the items of their data, and the samples of the open-source evals.

{"object": "eval.run.output_item", "datasource_item": {"ticket": "..."}, "datasource_item_id": 0, "results": [{"name", "passed",
  "score", "type", "sample"}], "sample": {"input": [{"role", "content"}], "output": [{"role", "content"}], "model", "usage", ...}}
{"item": {"ticket": "..."}, "sample": {"output_text": "..."}}
{"input": [{"role", "content"}], "ideal": "4"}    of the repository openai/evals, which also has ["4", "four"] and texts as input
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from judgekit.errors import TraceError
from judgekit.formats.blocks.common import read_counts
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.label_sources import label_source
from judgekit.formats.readers.base import RowReader, as_records, build_row_sample, build_sample, group_name
from judgekit.formats.readers.payloads import Payload, exchange_messages, messages_in, take_payload
from judgekit.formats.row_facts import to_text
from judgekit.formats.unread import canonical_column
from judgekit.formats.values import as_object, is_number, objects_in, parse_if_json, str_or_none
from judgekit.traces.message import AIMessage, HumanMessage, JsonObject
from judgekit.traces.recording import Label, ToolDefinition
from judgekit.traces.sample import References, Sample

_OUTPUT_ITEM, _RUN, _EVAL = "eval.run.output_item", "eval.run", "eval"
_BESIDE_ITEM = frozenset(("item", "sample", "id", *References.__annotations__)) - {"fields"}
_OF_SAMPLES = (frozenset(("input", "ideal")), frozenset(("messages", "ideal")))
_REFERENCES = frozenset(("reference", "references", "expected_output"))
_UUID = re.compile(r"-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
"""The suffix that the platform adds to the name of a grader."""
_COUNTS = {"input": "prompt_tokens", "output": "completion_tokens", "cached": "cached_tokens"}


class OpenAIEvalsReader(RowReader):
    """A reader of output items, items with or without a sample, and samples of openai/evals.

    Grades become labels, and the columns of an item become fields. An item without a sample has no agent message.
    """

    name = "openai-evals"
    shape = 'openai-evals: {"object": "eval.run.output_item", "datasource_item", "results", "sample"}; {"item", "sample"}; {"input", "ideal"} of openai/evals'

    def recognizes(self, value: JsonValue) -> bool:
        """Recognize records by ``object``, items by their few fields, and samples by ``ideal``."""
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

    def sample(self, record: JsonValue, index: int) -> Sample:
        """Read one output item, item or sample."""
        row = FieldTracker.of(record)
        fields = as_object(record)
        has_graders = "object" not in fields and isinstance(fields.get("testing_criteria"), list)
        if fields.get("object") == _EVAL or has_graders:
            problem = "is the definition of an eval, which has graders and no samples"
            raise TraceError(f"{problem}; score its output items, with scorers in place of its graders")
        if fields.get("object") == _RUN:
            hint = "client.evals.runs.output_items.list(run_id, eval_id=eval_id)"
            raise TraceError(f"is a run, whose data is not read; save its output items: {hint}")
        if row.peek("object") == _OUTPUT_ITEM:
            return _output_item(row, index)
        return _item(row, index) if "item" in row else _sample_of_repository(row, index)


def _output_item(row: FieldTracker, index: int) -> Sample:
    """Read an output item. Those of several runs about the same item are a group."""
    row.take_if("object", _OUTPUT_ITEM)
    item = row.take("datasource_item") if isinstance(row.peek("datasource_item"), dict) else {}
    about = _Item(as_object(item), row)
    ids = {name: text for name in ("eval_id", "run_id") if (text := row.text(name)) is not None}
    sample = row.object("sample") or FieldTracker({}, "sample", row.warnings)
    request = take_payload(sample, "input", HumanMessage)
    trace = {**about.conversation(sample, request), "labels": _labels(row), "metadata": ids}
    number = row.id("datasource_item_id")
    return about.sample(trace, index, {} if number is None else {"group": group_name(number, ids.get("eval_id"))})


def _item(row: FieldTracker, index: int) -> Sample:
    if not isinstance(row.peek("item"), dict):
        raise row.type_error("item", "an object")
    about, sample = _Item(as_object(row.take("item")), row), row.object("sample")
    request = Payload() if sample is None else take_payload(sample, "input", HumanMessage)
    request = request if request.messages else about.input()
    if sample is None:
        row.warn("the item has no sample, and so no answer")
        return about.sample({"messages": list(request.messages)}, index, {})
    return about.sample(about.conversation(sample, request), index, {})


@dataclass
class _Item:
    """An item of the data of an eval, and the record that holds it."""

    columns: JsonObject
    row: FieldTracker
    tools: list[ToolDefinition] = field(default_factory=list[ToolDefinition])

    def sample(self, trace: dict[str, object], index: int, facts: Mapping[str, object]) -> Sample:
        known: dict[str, object] = {"fields": self.columns, **facts}
        known |= {} if any(name in self.row for name in _REFERENCES) else self._references()
        return build_sample(self.row, index, {**trace, "tools": self.tools}, identity=None, **known)

    def _references(self) -> dict[str, object]:
        """Return the first column whose name says that it holds the expected output. It stays a field too."""
        for name, value in self.columns.items():
            if name in _REFERENCES or canonical_column(name) == "reference":
                if isinstance(value, str):
                    return {"reference": value}
                if isinstance(value, list) and value and all(isinstance(text, str) for text in value):
                    return {"references": value}
        return {}

    def input(self) -> Payload:
        columns: list[str] = [name for name in ("input", "messages") if name in self.columns]
        columns += [name for name in self.columns if canonical_column(name) == "input"]
        for name in columns:
            payload = take_payload(FieldTracker(self.columns, "item", self.row.warnings), name, HumanMessage)
            if payload.messages:
                return payload
        return Payload()

    def conversation(self, sample: FieldTracker, request: Payload) -> dict[str, object]:
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
                sample.take_if("output_text", payload.messages[-1].text)
                return payload
        text, tools = sample.peek("output_text"), sample.peek("output_tools")
        if not isinstance(text, str) and isinstance(azure_text := self.columns.get("sample.output_text"), str):
            return Payload((AIMessage(azure_text),))  # as Azure writes it
        if isinstance(text, str) or tools:
            message: JsonObject = {"role": "assistant", "content": text, "tool_calls": tools or None}
            if (payload := messages_in([message], sample, "output_text", AIMessage)) is not None:
                sample.take_if("output_json", parse_if_json(text))
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
        by_code = False if kind.startswith(("string", "text", "python")) else None  # asks no model
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
