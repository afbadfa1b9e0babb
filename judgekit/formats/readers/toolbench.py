"""Answer files of ToolBench: the path that a search took, and the tree of everything it tried.

{"win": true, "tree": {...}, "answer_generation": {"valid_data": true, "function": [...], "final_answer": "...", "train_messages": [
  [{"role": "system", ...}, {"role": "user", ...}, {"role": "assistant", "content": null, "function_call": {...}}],
  [..., {"role": "function", "name": "f", "content": "..."}, {"role": "assistant", "function_call": {"name": "Finish", ...}}]]}}
"""

from pydantic import JsonValue

from judgekit.errors import TraceError
from judgekit.formats.blocks.openai_chat import read_messages, read_tools
from judgekit.formats.blocks.reply import to_content
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.readers.base import RowReader, build_sample, first_record
from judgekit.formats.row_facts import to_text
from judgekit.formats.values import as_list, lookup
from judgekit.traces.message import AIMessage, Message, Part, ReasoningPart, TextPart
from judgekit.traces.recording import Label
from judgekit.traces.sample import Sample


class ToolBenchReader(RowReader):
    """A reader of answers. The last message list is the path taken; other lists and the tree stay in ``extra``.

    The final call of ``Finish`` is not a call but the agent's answer, which is empty if the agent gave up.
    """

    name = "toolbench"
    shape = 'toolbench: {"answer_generation": {"train_messages": [[...], ...], "function": [...]}, "tree": {...}, "win": true}'

    def recognizes(self, value: JsonValue) -> bool:
        """Recognize a generated answer."""
        return isinstance(lookup(first_record(value), "answer_generation"), dict)

    def sample(self, record: JsonValue, index: int) -> Sample:
        """Read one answer. A label records if the search found an answer; the results of its calls show what failed."""
        row = FieldTracker.of(record)
        answer = row.object("answer_generation") or FieldTracker({})
        paths = answer.peek("train_messages")
        if not isinstance(paths, list) or not paths:
            unfinished = " (valid_data is false: the search ended without an answer)"
            raise TraceError(f"contains no messages{unfinished if answer.peek('valid_data') is False else ''}")
        number = len(paths) - 1
        path = FieldTracker({f"train_messages[{number}]": paths[-1]}, answer.path, row.warnings)
        messages = read_messages(path, f"train_messages[{number}]")
        if not messages:
            raise TraceError(f"{answer.path}.train_messages[{number}]: contains no messages")
        messages[-1] = _finished(messages[-1], path)
        whole = as_list(paths[-1])
        if all(isinstance(messages, list) and whole[: len(messages)] == messages for messages in paths):
            answer.take("train_messages")
        win = row.boolean("win")
        labels = [] if win is None else [Label("win", win, source="benchmark")]
        if any(name in row for name in ("tree", "trys")):
            row.warn("other branches of the search are kept in extra")
        trace = {
            "messages": messages,
            "tools": read_tools(answer.optional_objects("function")),
            "termination": answer.text("finish_type"),
            "labels": labels,
        }
        return build_sample(row, index, trace)


def _finished(message: Message, path: FieldTracker) -> Message:
    """Return the last message of a path. Text next to ``Finish`` is reasoning; other arguments go to ``extra``."""
    if not isinstance(message, AIMessage) or [call.name for call in message.tool_calls] != ["Finish"]:
        return message
    [call] = message.tool_calls
    if call.args_error:
        path.warn("cannot read the answer: the arguments of Finish are invalid")
        return message
    rest = dict(call.args)
    answer = rest.pop("final_answer", None) if rest.get("return_type") == "give_answer" else None
    thoughts = [TextPart(message.content)] if isinstance(message.content, str) else message.content
    parts: list[Part] = [
        ReasoningPart(part.text, extra=part.extra) if isinstance(part, TextPart) else part
        for part in thoughts
        if part != TextPart("")
    ]
    if answer is not None:
        parts.append(TextPart(to_text(answer)))
    extra = {**message.extra, "Finish": {**rest, **call.extra}}
    return AIMessage.model_validate({**dict(message), "content": to_content(parts), "tool_calls": (), "extra": extra})
