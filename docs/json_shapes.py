"""The shapes of the JSON that commands print, from what they print of the examples, and from the models that some print."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import chdir
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from typer.testing import CliRunner

from judgekit.analysis.compare_judges import JudgeComparison
from judgekit.analysis.findings import Audit
from judgekit.cli.app import app, load_commands
from judgekit.judges.doctor import JudgeDiagnosis

EXAMPLES = Path(__file__).parents[1] / "examples"
JSON = """# JSON of commands

What commands print with `--json`; `-o` writes the same to a file whose name ends in `.json`. On stdout there is nothing
else, and messages go to stderr. Errors are on stderr alone, with the exit code 2.

Each line has keys with the kind of their values, and the keys within these are indented. `...` stands for keys that are
names, such as scorers or reasons. Keys without a value in the examples are `null` here, and may have one.
"""
RUN = (
    "run",
    "conversations.jsonl",
    "--show",
    "1",
    "--gate",
    "failed <= 1%",
    "--json",
)
GOAL = "agent_goal_accuracy_without_reference"
OTHERS = (
    "tool_call_accuracy",
    "tool_call_f1",
    "topic_adherence",
    "agent_goal_accuracy_with_reference",
    GOAL,
)
FAILURES = (
    *RUN,
    *(word for name in (*OTHERS, "failure_analysis") for word in ("-s", name)),
)
COMMANDS: Sequence[tuple[str, str, Sequence[Sequence[str]]]] = (
    ("run, resume, score, merge and runs RUN", "`-o run.json`", [*((*RUN, "-s", GOAL, "-s", f"max_messages:{most},as=size") for most in (3, 9)), FAILURES, FAILURES]),
    ("run --dry-run", "", [("run", "conversations.jsonl", "--dry-run", "--json", "-s", "topic_adherence")]),
    ("runs", "", [("runs", "--json")]),
    ("show", "", [("show", "1", "hotel_clean", "--json"), ("show", "2", "hotel_clean", "--json")]),
    ("compare", "`-o compared.json`", [("compare", "1", "2", "--json", "--labels", "two.csv", "--gate", "size.difference >= -1")]),
    ("audit", "`-o audit.json`", [("audit", "1", "--labels", "labels.csv", "--json")]),
    ("failures", "`-o issues.json`", [("failures", "4", "--since", "3", "--json")]),
    ("inspect", "", [("inspect", "conversations.jsonl", "--json")]),
    ("scorers", "", [("scorers", "--json")]),
)  # fmt: skip
NAMED = {
    "statuses",
    "counts",
    "errors",
    "skipped",
    "scores",
    "confusion",
    "roles",
    "details",
    "about",
    "losses",
    "gates",
}
NAMED |= {
    "messages",
    "calls",
    "results",
    "references",
    "formats",
    "first_paths",
    "label_sources",
}
"""Keys whose values have names as keys, where these are objects."""


def json_page() -> str:
    """Return the page of the JSON of commands."""
    load_commands([])
    sections = [JSON]
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for name in (
            "conversations.jsonl",
            "replies.jsonl",
            "labels.csv",
            "judgekit.toml",
        ):
            shutil.copy(EXAMPLES / name, folder)
        labels = (EXAMPLES / "labels.csv").read_text().splitlines()
        Path("two.csv").write_text("\n".join([f"{labels[0]},run", *(f"{line},1" for line in labels[1:3])]))
        os.environ["COLUMNS"] = "200"
        for title, also, calls in COMMANDS:
            schema = _inferred([_printed(words) for words in calls])
            if title == "audit":
                own = Audit.model_json_schema()
                schema = {
                    **own,
                    "properties": own["properties"] | {"gates": schema["properties"]["gates"]},
                }
            sections.append(_section(title, also, schema))
    sections.append(_section("compare-judges", "`-o judges.json`", JudgeComparison.model_json_schema()))
    schema = TypeAdapter(JudgeDiagnosis).json_schema()
    diagnosed = {
        "judge": {"type": "string"},
        "model": {"type": "string"},
        "diagnosis": schema,
    }
    listed = {
        "type": "array",
        "items": {"type": "object", "properties": diagnosed},
        "$defs": schema.pop("$defs", {}),
    }
    sections.append(_section("doctor", "", listed))
    return "\n".join(sections)


def _printed(words: Sequence[str]) -> Any:
    ended = CliRunner().invoke(app, list(words))
    if ended.exit_code not in (0, 1) or not ended.stdout:
        raise RuntimeError(f"{words}: {ended.output}{ended.exception}")
    return json.loads(ended.stdout)


def _section(title: str, also: str, schema: Mapping[str, Any]) -> str:
    lines = "\n".join(_lines(schema, schema.get("$defs", {}), ()))
    return f"## {title}\n\n{f'Also with {also}.' if also else ''}\n\n```text\n{lines}\n```\n".replace("\n\n\n", "\n")


def _inferred(values: Iterable[Any], name: str = "") -> dict[str, Any]:
    """Return a schema that all values have, whose objects have the keys of all of them."""
    values = list(values)
    kinds = dict.fromkeys(_kind(value) for value in values)
    schema: dict[str, Any] = {"anyOf": [{"type": kind} for kind in kinds if kind not in ("object", "array")]}
    if objects := [value for value in values if isinstance(value, dict)]:
        keys = dict.fromkeys(key for value in objects for key in value)
        parts = {key: _inferred((value[key] for value in objects if key in value), key) for key in keys}
        if name in NAMED and not any(key in ("name", "text", "scorer") for key in keys):
            inner = _inferred([item for value in objects for item in value.values()])
            schema |= {
                "type": "object",
                "additionalProperties": inner if keys else {"type": "any"},
            }
        else:
            schema |= {"type": "object", "properties": parts}
    if "array" in kinds:
        schema |= {
            "type": "array",
            "items": _inferred(item for value in values if isinstance(value, list) for item in value),
        }
    return schema


def _kind(value: Any) -> str:
    kinds = {
        bool: "boolean",
        int: "number",
        float: "number",
        str: "string",
        type(None): "null",
        dict: "object",
    }
    return kinds.get(type(value), "array")


def _lines(schema: Any, defined: Mapping[str, Any], above: Sequence[str]) -> Iterator[str]:
    """Yield the keys of a schema with the kinds of their values, those alike in one line, and, indented, the keys of these."""
    part = _resolved(schema, defined)
    if part.get("type") == "array" and not above:
        yield "list of"
        above = ("",)
    inner = part
    while inner.get("type") == "array":
        inner = _resolved(inner.get("items", {}), defined)
    properties = dict(inner.get("properties", {}))
    if isinstance(other := inner.get("additionalProperties"), dict):
        properties["..."] = other
    indent = "  " * len(above)
    kind = ""
    alike: list[str] = []  # keys in a row whose values have one kind and no keys
    for name, value in properties.items():
        words = _words(value, defined)
        within = [*_lines(value, defined, (*above, name))] if len(above) < 6 else []
        if alike and (within or words != kind):
            yield f"{indent}{', '.join(alike)}: {kind}"
            alike = []
        if within:
            yield f"{indent}{name}: {words}"
            yield from within
        else:
            alike.append(name)
            kind = words
    if alike:
        yield f"{indent}{', '.join(alike)}: {kind}"


def _resolved(schema: Any, defined: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a reference refers to, or of several kinds the one that has keys."""
    while isinstance(schema, dict) and ("$ref" in schema or ("anyOf" in schema and "type" not in schema)):
        if "$ref" in schema:
            schema = defined[schema["$ref"].rpartition("/")[2]]
        else:
            kinds = schema["anyOf"]
            schema = next(
                (kind for kind in kinds if "$ref" in kind or kind.get("type") in ("object", "array")),
                {},
            )
    return schema if isinstance(schema, dict) else {}


def _words(schema: Any, defined: Mapping[str, Any]) -> str:
    names = {
        "string": "text",
        "integer": "number",
        "null": "null",
        "boolean": "boolean",
        "object": "object",
    }
    if not isinstance(schema, dict):
        return "any value"
    if "$ref" in schema:
        return _words(defined[schema["$ref"].rpartition("/")[2]], defined)
    kinds = [_words(kind, defined) for kind in schema.get("anyOf", ())]
    if "const" in schema or "enum" in schema:
        kinds += [json.dumps(choice) for choice in schema.get("enum", [schema.get("const")])]
    elif schema.get("type") == "array":
        inner = _words(schema.get("items", {}), defined)
        kinds.append(
            f"{inner}s" if inner == "object" else f"list of {inner}s" if inner in ("text", "number") else "list"
        )
    elif "type" in schema:
        kinds.append(names.get(schema["type"], schema["type"]))
    return " or ".join(dict.fromkeys(kinds)) or "any value"
