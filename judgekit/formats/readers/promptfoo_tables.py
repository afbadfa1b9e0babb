"""Rows of promptfoo's tables as results, and templates with the variables of a test filled in."""

import re
from collections.abc import Iterator
from contextlib import suppress

from pydantic import JsonValue

from judgekit.errors import TraceError
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.readers.payloads import Payload, messages_in, parse_structured_json
from judgekit.formats.row_facts import to_text
from judgekit.formats.values import as_object, is_number, lookup, objects_in, parse_if_json, without
from judgekit.traces.message import HumanMessage, JsonObject

ERROR = 2
"""The ``failureReason`` of a result without an answer that could be tested."""
_HEADER = re.compile(r"\[(.+?)\] (.*)", re.DOTALL)
"""The header of an output in a table: its provider and the label of its prompt."""
_ESCAPED = re.compile(r"'[\s\u200b-\u200d]*[=@+-]")
"""A cell to which promptfoo added an apostrophe, so that spreadsheets do not take it for a formula."""
_PLACEHOLDER = re.compile(r"\{\{\s*([\w.]+)\s*\}\}")
_TEMPLATE = re.compile(r"\{[{%#]")
_FILE = re.compile(r"[^\s:]+\.\w+(:\w+)?: ")
"""The file of a prompt, at the beginning of its label."""


def is_table_row(value: JsonValue) -> bool:
    """Return whether a value is a row of a table, as `OutputColumns` nests it."""
    return isinstance(value, dict) and {"vars", "testIdx", "outputs"} <= value.keys()


def table_results(row: JsonObject) -> Iterator[JsonValue]:
    """Yield the results in a row of a table, in the form of other files."""
    cells = {name: _cell(value) for name, value in as_object(row["vars"]).items()}
    description = cells.pop("Description", None)
    tested = [(number, output) for number, output in enumerate(objects_in(row["outputs"])) if output.get("Status")]
    if not tested:
        raise TraceError("the row has no output with a status")
    for number, output in tested:
        named = _HEADER.fullmatch(to_text(output.get("header")))
        provider, label = named.groups() if named else ("", to_text(output.get("header")))
        status, named_scores = output.get("Status"), as_object(parse_if_json(output.get("Named Scores")))
        metrics = {name[8:]: parse_if_json(output[name]) for name in output if name.startswith("Metric: ")}
        rounded = {
            name: to_text(parse_if_json(f"{value:.2f}")) for name, value in named_scores.items() if is_number(value)
        }
        answer = _cell(output.get("output"))
        grading: JsonObject = {"reason": _cell(output.get("Grader Reason")), "comment": _cell(output.get("Comment"))}
        yield {
            **without(row, "vars", "outputs"),
            "promptIdx": number,
            "vars": {name: cell for name, cell in cells.items() if cell != ""},
            "prompt": {"label": label, "filled": _filled_label(label, cells)},
            "provider": {"label": provider},
            "response": {"output": None if status == "ERROR" and not answer else answer},
            "success": status == "PASS",
            "score": parse_if_json(output.get("Score")),
            "namedScores": {**metrics, **named_scores},
            "metrics": {name: score for name, score in metrics.items() if rounded.get(name) != to_text(score)} or None,
            "gradingResult": grading,
            "failureReason": {"PASS": 0, "FAIL": 1, "ERROR": ERROR}.get(to_text(status), status),
            "testCase": {"description": description},
        }


def _cell(value: JsonValue) -> JsonValue:
    return value[1:] if isinstance(value, str) and _ESCAPED.match(value) else value


def _filled_label(label: str, variables: JsonObject) -> JsonValue:
    """Return the label of a prompt with the variables filled in; ``None`` if it is no template."""
    template = _FILE.sub("", label, count=1)
    filled = fill_template(parse_structured_json(template), variables)
    return filled if _PLACEHOLDER.search(template) or not variables else None


def fill_template(template: JsonValue, variables: JsonObject) -> JsonValue:
    """Return a template with its variables filled in; ``None`` if it has more than plain variables."""
    if isinstance(template, dict):
        fields = {name: fill_template(part, variables) for name, part in template.items()}
        return None if None in fields.values() else fields
    if isinstance(template, list):
        parts = [fill_template(part, variables) for part in template]
        return None if None in parts else parts
    if not isinstance(template, str):
        return template
    values = {path: lookup(variables, *path.split(".")) for path in _PLACEHOLDER.findall(template)}
    if None in values.values() or _TEMPLATE.search(_PLACEHOLDER.sub("", template)):
        return None
    return _PLACEHOLDER.sub(lambda match: to_text(values[match[1]]), template)


def table_request(prompt: FieldTracker, variables: JsonObject) -> Payload:
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
