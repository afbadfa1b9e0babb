r"""The memory of an agent of smolagents, as ``agent.memory.get_full_steps()`` returns it, and results of its runs.

[{"task": "Weather?", "task_images": null},
 {"step_number": 1, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "weather", "arguments": {"city": "a"}}}],
  "model_output": "", "observations": "rain", "error": null, "is_final_answer": false, ...},
 {"step_number": 2, "tool_calls": [{"function": {"name": "final_answer", "arguments": {"answer": "Rain."}}, ...}], "is_final_answer": true, ...}]
"""

import re
from collections.abc import Sequence

from pydantic import JsonValue

from judgekit.errors import TraceError
from judgekit.formats.blocks.common import read_counts
from judgekit.formats.blocks.openai_chat import read_message
from judgekit.formats.blocks.reply import to_content
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.readers.base import MessagesReader, build_sample
from judgekit.formats.row_facts import to_text
from judgekit.formats.sub_agents import unread_sub_agents
from judgekit.formats.values import as_list, as_object, first_value, head, lookup, objects_in, without
from judgekit.traces.message import (
    AIMessage,
    HumanMessage,
    JsonObject,
    Message,
    ReasoningPart,
    SystemMessage,
    TextPart,
    ToolMessage,
)
from judgekit.traces.sample import Sample

_FINAL = "final_answer"
_INPUTS = "model_input_messages"
_MANAGED = re.compile(r"final answer from your managed agent '([^'\n]{1,200})'")
"""The beginning of a managed agent's report; its own steps are not in the memory of its manager."""


class SmolagentsReader(MessagesReader):
    """A reader of steps: the task, plans, and actions with their calls and observations.

    A call of ``final_answer`` is not a call but the agent's answer. Errors that answer no call are system messages.
    """

    name = "smolagents"
    shape = 'smolagents: [{"task": ...}, {"step_number": 1, "tool_calls": [...], "observations": ...}, ...], or {"steps": [...], "output": ...}'

    def is_conversation(self, document: JsonValue, /) -> bool:
        """Recognize actions by their number and observations."""
        steps = first_value(document, "steps", "messages") if isinstance(document, dict) else document
        return any(
            "step_number" in step and not {"observations", _INPUTS, "model_output"}.isdisjoint(step)
            for step in objects_in(head(steps))
        )

    def sample(self, record: JsonValue, index: int) -> Sample:
        """Read one run. The error of the last step is its termination."""
        row = FieldTracker.of({"steps": record} if isinstance(record, list) else record)
        messages: list[Message] = []
        repeated = 0
        error: str | None = None
        for step in row.objects("steps", "messages"):
            inputs = step.take(_INPUTS)
            repeated += inputs is not None
            system = next((given for given in objects_in(inputs) if given.get("role") == "system"), None)
            if system is not None and not any(message.role == "system" for message in messages):
                fields = {**without(system, "raw"), "tool_calls": None}
                messages.insert(0, read_message(FieldTracker(fields, f"{step.path}.{_INPUTS}", row.warnings)))
            error = None
            if (read := _read_step(step)) is not None:
                messages += read
            else:
                error = str(lookup(step.peek("error"), "type") or "error") if "error" in step else None
                messages += _Action(step).messages()
        if not messages:
            raise TraceError("steps: expected steps, found none")
        if repeated:
            row.warn(f"repeats the history, left out except the system prompt, found {repeated}", _INPUTS)
        if managed := [name for message in messages[1:] for name in _MANAGED.findall(message.text)]:
            row.warnings.append(unread_sub_agents(list(dict.fromkeys(managed))))
        output = row.peek("output")
        if output is not None and messages[-1].text == to_text(output):
            row.take("output")
        ended, usage = error or row.text("state"), read_counts(row.object("token_usage"))
        return build_sample(row, index, {"messages": messages, "termination": ended, "usage": usage})


def _read_step(step: FieldTracker) -> list[Message] | None:
    """Read a system prompt, a task or a plan; ``None`` if the step is an action."""
    for name, kind in (("system_prompt", SystemMessage), ("task", HumanMessage), ("plan", AIMessage)):
        if "step_number" not in step and (text := step.text(name)) is not None:
            about: dict[str, object] = {"usage": read_counts(step.object("token_usage"))} if kind is AIMessage else {}
            return [kind.model_validate({"content": text, **about, **_start(step), "extra": step.leftover()})]
    if "step_number" not in step and (output := step.take("output")) is not None:
        return [AIMessage(to_text(output), extra=step.leftover())]
    return None


class _Action:
    """A step in which the agent calls tools or answers."""

    def __init__(self, step: FieldTracker) -> None:
        self._step = step
        calls = objects_in(step.peek("tool_calls"))
        if "tool_calls" in step and len(calls) != len(as_list(step.peek("tool_calls"))):
            raise step.type_error("tool_calls", "a list of objects")
        step.take("tool_calls")
        finals = [call for call in calls if lookup(call, "function", "name") == _FINAL]
        self._error = step.object("error")
        flag = step.boolean("is_final_answer")
        self._is_final = bool(finals) and self._error is None if flag is None else flag
        self._finals = finals if self._is_final else []
        self._calls: list[JsonValue] = [call for call in calls if call not in self._finals]
        self._drop_repeated(calls)

    def messages(self) -> list[Message]:
        step = self._step
        text, observed, answer = step.take("model_output"), step.text("observations"), step.take("action_output")
        final = next((lookup(call, "function", "arguments") for call in self._finals), None)
        if self._is_final and answer is None:
            answer = observed if final is None else as_object(final).get("answer", final)
        about = {"usage": read_counts(step.object("token_usage")), **_start(step)}
        fields: JsonObject = {"role": "assistant", "content": text, "tool_calls": self._calls}
        said = read_message(FieldTracker(fields, step.path, step.warnings), **about)
        rest: JsonObject = {}
        answers = self._is_final or (answer is not None and not self._calls)
        if answers and not self._calls:
            if observed is not None and observed.strip() != to_text(answer).strip():
                rest["observations"] = observed
            thought = [] if said.text in ("", to_text(answer)) else [ReasoningPart(said.text)]
            content = to_content([*thought, TextPart("" if answer is None else to_text(answer))])
            messages = [*self._results(None), AIMessage.model_validate({**dict(said), "content": content})]
        else:
            messages = [said, *self._results(observed), *([AIMessage(to_text(answer))] if answers else [])]
            if not answers and answer is not None and to_text(answer) not in (observed or ""):
                rest["action_output"] = answer
        for call in self._finals:
            given = as_object(lookup(call, "function", "arguments"))
            others = without(given, "answer") if given.get("answer") == answer else given
            rest[_FINAL] = {**without(call, "function"), **others}
        rest = {**step.leftover(), **rest}
        return [messages[0].model_copy(update={"extra": {**messages[0].extra, **rest}}), *messages[1:]]

    def _results(self, observed: str | None) -> list[Message]:
        """Return the observations, and what went wrong, as the result of the first call, or else as the program's words."""
        problem = None if self._error is None else self._error.text("message")
        texts = [text for text in (observed, problem) if text is not None]
        if not texts:
            return []
        if not self._calls:
            return [SystemMessage("\n".join(texts))]
        if len(self._calls) > 1:
            self._step.warn(f"one text for {len(self._calls)} calls, kept as the result of the first", "observations")
        identity, name = lookup(self._calls[0], "id"), lookup(self._calls[0], "function", "name")
        fields = {"content": "\n".join(texts), "tool_call_id": identity, "name": name, "is_error": problem is not None}
        return [ToolMessage.model_validate(fields)]

    def _drop_repeated(self, calls: Sequence[JsonObject]) -> None:
        """Leave out of the model's message what the step says too."""
        if (message := self._step.object("model_output_message")) is None:
            return
        message.take_if("role", "assistant")
        if message.peek("content") == self._step.peek("model_output") or not message.peek("content"):
            message.take("content")
        own = objects_in(message.peek("tool_calls"))
        if list(map(_filled, own)) == list(map(_filled, calls)):
            message.take("tool_calls")
        message.take_if("token_usage", self._step.peek("token_usage"))


def _start(step: FieldTracker) -> dict[str, object]:
    timing = step.object("timing")
    return {"timestamp": timing.time("start_time")} if timing is not None else {}


def _filled(call: JsonObject) -> JsonObject:
    """Return a call without its fields that are ``null``."""
    function: JsonObject = {name: field for name, field in as_object(call.get("function")).items() if field is not None}
    return {**{name: field for name, field in call.items() if field is not None}, "function": function}
