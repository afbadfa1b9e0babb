"""Prompt files: one Markdown file with front matter for each question to a judge."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, Field, ValidationError, field_validator, model_validator

from judgekit.errors import PromptError, unknown_name_message, validation_message
from judgekit.judges.inputs import CONVERSATION, PROMPT_INPUTS, prompt_input
from judgekit.judges.prompt import Prompt, shared_text
from judgekit.judges.template import template_inputs
from judgekit.resources import resource_folder
from judgekit.score import ScaleValue
from judgekit.traces.message import FrozenModel, Many
from judgekit.traces.sample_path import ValuePath

_ANSWERED = ("reason", "evidence", "verdict", "agents")
"""The fields after the steps in the answer to a prompt with a scale."""
_LONGEST_HEAD = 20_000
"""The most characters of front matter."""
_DEEPEST = 32
"""The most lists and mappings of front matter that stand within each other."""


class _FrontMatter(FrozenModel):
    description: str = ""
    inputs: Many[str]
    optional: Many[str] = ()
    options: Many[str] = ()
    scale: dict[str, ScaleValue] = Field(default_factory=dict[str, ScaleValue])
    steps: Many[str] = ()
    quotes: bool = False
    skipped: str = ""
    source: str = ""
    alignment: str = ""
    per_turn: bool = False

    @field_validator("scale", mode="before")
    @classmethod
    def _labels_are_text(cls, scale: object) -> object:
        if isinstance(scale, list):
            raise ValueError("a scale gives each label a value, such as {good: 1, bad: 0}; found a list")
        if not isinstance(scale, dict):
            return scale
        labels = cast("dict[object, object]", scale)
        if misread := [label for label in labels if isinstance(label, bool) or label is None]:
            raise ValueError(f"YAML reads some labels as {misread}: quote words such as yes, no, on, off, null")
        for label, grade in labels.items():
            if grade not in ("skipped", "abstained") and not (isinstance(grade, int | float) and 0 <= grade <= 1):
                raise ValueError(
                    f"the value of {label!r} must be a number in [0, 1], skipped or abstained, found {grade!r}"
                )
        if len(read := {str(label): grade for label, grade in labels.items()}) < len(labels):
            raise ValueError(f"labels must be distinct, found {[*labels]}")
        return read

    @model_validator(mode="after")
    def _must_decide(self) -> "_FrontMatter":
        if self.scale and len(self.scale) < 2:
            raise ValueError("a scale needs at least two labels")
        if self.scale and not any(isinstance(grade, float) for grade in self.scale.values()):
            raise ValueError("a scale needs a label with a value in [0, 1]")
        odd = [step for step in self.steps if not re.fullmatch("[a-z][a-z0-9_]*", step) or hasattr(BaseModel, step)]
        twice = [step for step, times in Counter([*self.steps, *_ANSWERED]).items() if times > 1]
        if odd or twice:
            raise ValueError(
                f"steps must be plain names such as key_points, other than {', '.join(_ANSWERED)}, found {odd + twice}"
            )
        return self


def shipped_prompts() -> Sequence[Prompt]:
    """Return all prompts that ship with judgekit, sorted by name."""
    return [load_prompt(name) for name in _names_in(resource_folder("prompts"))]


def load_prompt(name: str | Path) -> Prompt:
    """Return a shipped prompt by its name, or any prompt by the path of its file.

    Args:
        name: A name such as ``tone``, or a path that ends in ``.md``.

    Raises:
        PromptError: There is no such prompt, or its front matter and its question do not agree.
    """
    if not str(name).endswith(".md"):
        return _shipped_prompt(str(name))
    path = Path(name)
    return _read_prompt(path, _read_text(path))  # a user's file may have changed since


@cache
def _shipped_prompt(name: str) -> Prompt:
    folder = resource_folder("prompts")
    if name not in (names := _names_in(folder)):
        none = unknown_name_message("prompt", name, names, limit=len(names))
        raise PromptError(f"{none}; name a prompt of your own by its file, which ends in .md")
    path = folder / f"{name}.md"
    return _read_prompt(path, _read_text(path))


def _names_in(folder: Path) -> Sequence[str]:
    return sorted(path.stem for path in folder.glob("*.md") if "." not in path.stem and path.stem != "system")


def _read_prompt(path: Path, text: str) -> Prompt:
    import yaml  # noqa: PLC0415 - slow to import, and only judges need it

    head, _, body = text.removeprefix("---\n").partition("\n---\n")
    if not text.startswith("---\n") or not body.strip():
        raise PromptError(f"{path}: expected YAML between two lines of ---, then the question")
    if len(head) > _LONGEST_HEAD:
        raise PromptError(f"{path}: the front matter may have {_LONGEST_HEAD:,} characters, and has {len(head):,}")
    try:
        _refuse_aliases_and_repeats(head)
        front = _FrontMatter.model_validate(yaml.safe_load(head))
    except ValidationError as error:
        unknown = next(
            (str(problem["loc"][0]) for problem in error.errors() if problem["type"] == "extra_forbidden"), ""
        )
        problem = (
            unknown_name_message("key", unknown, _FrontMatter.model_fields) if unknown else validation_message(error)
        )
        raise PromptError(f"{path}: {problem}") from error
    except (yaml.YAMLError, ValueError) as error:  # ValueError: an invalid date in YAML
        raise PromptError(f"{path}: {error}") from error
    except (ArithmeticError, LookupError, AttributeError) as error:
        raise PromptError(f"{path}: a tag does not fit what it stands on, or a number is too large: {error}") from error
    holes = {name: _canonical(path, name) for name in (*front.inputs, *front.optional)}
    named = template_inputs(body, path)
    if front.scale and CONVERSATION not in front.inputs:
        raise PromptError(f"{path}: evidence cites messages, so a prompt with a scale needs the input {CONVERSATION}")
    if {*named} != {*holes.values(), *front.options} - {CONVERSATION}:
        problem = f"declares the inputs {sorted({*holes.values(), *front.options})} and uses {sorted(named)}"
        raise PromptError(
            f"{path}: {problem}; the two must agree ({CONVERSATION} is placed before the question automatically)"
        )
    fields: dict[str, Any] = {
        **dict(front),
        "scale": tuple(front.scale.items()),
        "inputs": tuple(holes[name] for name in front.inputs),
        "optional": tuple(holes[name] for name in front.optional),
    }
    return Prompt(name=path.stem, system=shared_text("system.md"), question=body.strip(), **fields)


def _canonical(file: Path, name: str) -> str:
    """Return the name of an input, as `Prompt.holes` has it."""
    try:
        prompt_input(name)
    except ValueError as error:
        raise PromptError(f"{file}: unknown inputs {[name]}; {error}") from error
    return name if name in PROMPT_INPUTS else str(ValuePath.parse(name))


def _refuse_aliases_and_repeats(head: str) -> None:
    """Refuse aliases in YAML, which make a short text a huge value, and repeated keys, of which the last would count.

    So is deep nesting, whose square is the time that PyYAML takes.

    Raises:
        ValueError: There is one.
    """
    import yaml  # noqa: PLC0415 - slow to import, and only judges need it

    depth = 0
    for event in cast("Iterable[yaml.Event]", yaml.parse(head, yaml.SafeLoader)):  # pyright: ignore[reportUnknownMemberType]
        if isinstance(event, yaml.AliasEvent):
            raise ValueError(f"expected no aliases, found *{event.anchor}: repeat what it stands for")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise ValueError("nested too deeply")
    pending: list[yaml.Node | None] = [yaml.SafeLoader(head).get_single_node()]
    while pending:
        node = pending.pop()
        if isinstance(node, yaml.MappingNode):
            pairs = cast("list[tuple[yaml.Node, yaml.Node]]", node.value)
            times = Counter((key.tag, str(key.value)) for key, _ in pairs if isinstance(key, yaml.ScalarNode))
            if twice := next((name for (_, name), count in times.items() if count > 1), ""):
                raise ValueError(f"the key {twice!r} appears twice")
            pending += [value for _, value in pairs]
        elif isinstance(node, yaml.SequenceNode):
            pending += cast("list[yaml.Node]", node.value)


def prompt_file_text(prompt: Prompt) -> str:
    """Return the text of a file that `load_prompt` reads as a prompt; comments in front matter are lost."""
    import yaml  # noqa: PLC0415 - slow to import

    settings: dict[str, object] = {name: getattr(prompt, name) for name in _FrontMatter.model_fields}
    settings["scale"] = dict(prompt.scale)
    front = {
        name: [*cast("tuple[str, ...]", value)] if isinstance(value, tuple) else value
        for name, value in settings.items()
        if value or name == "inputs"
    }
    head = yaml.safe_dump(  # pyright: ignore[reportUnknownMemberType] - its stubs leave a width open
        front, sort_keys=False, allow_unicode=True, width=10_000, default_flow_style=None
    )
    return f"---\n{head}---\n{prompt.question}\n"


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")  # some editors write a byte order mark
    except FileNotFoundError:
        there = [f"{name}.md" for name in _names_in(path.parent)]
        meant = path.stem if path.stem in _names_in(resource_folder("prompts")) else ""
        raise PromptError(f"{path}: {unknown_name_message('prompt file', path.name, there, guess=meant)}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise PromptError(f"{path}: cannot be read: {error}") from error
