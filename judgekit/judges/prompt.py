"""Prompts: one Markdown file for each question that a judge is asked."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import jinja2
import jinja2.meta
import yaml
from pydantic import ValidationError

from judgekit.errors import PromptError, explain
from judgekit.judges.client import Turn
from judgekit.shipped import shipped
from judgekit.traces.message import JsonObject, Many, Record
from judgekit.traces.rendering import fenced
from judgekit.traces.sample import Sample

CONVERSATION = "conversation"


@dataclass(frozen=True)
class Input:
    """A hole that a prompt may have: whether a sample can fill it, and with what."""

    is_there: Callable[[Sample], bool]
    text: Callable[[Sample], str]


def _is_said(text: str | None) -> bool:
    return text is not None and bool(text.strip())


INPUTS: dict[str, Input] = {
    CONVERSATION: Input(lambda sample: bool(sample.trace.messages), lambda sample: sample.trace.render()),
    "reference": Input(
        lambda sample: _is_said(sample.reference), lambda sample: fenced("reference", sample.reference or "")
    ),
    "reference_topics": Input(
        lambda sample: any(map(_is_said, sample.reference_topics or ())),
        lambda sample: fenced("topics", "\n".join(" ".join(one.split()) for one in sample.reference_topics or ())),
    ),
}
"""The holes that a prompt may have. All that fills them is data, and fenced."""


class _FrontMatter(Record):
    description: str
    inputs: Many[str]
    source: str


@dataclass(frozen=True)
class Prompt:
    """A question with named holes, as `load_prompt` reads it.

    Attributes:
        name: The file's name, without its ending.
        description: What is asked, in a sentence.
        inputs: The holes. ``conversation`` stands before the question, the others where the question names them.
        source: Where the question comes from.
        system: What every judge is told first.
        question: The question, in Jinja.
    """

    name: str
    description: str
    inputs: tuple[str, ...]
    source: str
    system: str = field(repr=False)
    question: str = field(repr=False)

    def version(self, schema: JsonObject) -> str:
        """The name and the hash of all that is sent beside the recording, such as ``agent_goal@1a28c6d6``."""
        words = json.dumps([self.system, self.question, schema])
        return f"{self.name}@{hashlib.sha256(words.encode()).hexdigest()[:8]}"

    def missing(self, sample: Sample) -> tuple[str, ...]:
        """The inputs that a sample does not have."""
        return tuple(name for name in self.inputs if not INPUTS[name].is_there(sample))

    def turns(self, sample: Sample) -> tuple[Turn, Turn]:
        """The messages of the request: the system part, then the conversation with the question behind it.

        Raises:
            PromptError: The sample lacks an input.
        """
        if lacking := self.missing(sample):
            raise PromptError(f"{self.name}: the sample {sample.id!r} has no {' and no '.join(lacking)}")
        filled = {name: INPUTS[name].text(sample) for name in self.inputs}
        question = _template(self.question).render(filled)
        conversation = filled.get(CONVERSATION)
        user = question if conversation is None else f"{conversation}\n\n{question}"
        return Turn("system", self.system), Turn("user", user)


@cache
def load_prompt(name: str | Path) -> Prompt:
    """A shipped prompt by its name, or any prompt file by its path.

    Raises:
        PromptError: There is no such prompt, or its front matter and its question do not fit.
    """
    path = Path(name) if str(name).endswith(".md") else shipped("prompts") / f"{name}.md"
    text = _text(path)
    head, _, body = text.removeprefix("---\n").partition("\n---\n")
    if not text.startswith("---\n") or not body.strip():
        raise PromptError(f"{path}: a prompt is YAML between two lines of ---, then the question")
    try:
        front = _FrontMatter.model_validate(yaml.safe_load(head))
        named = jinja2.meta.find_undeclared_variables(_jinja().parse(body))
    except ValidationError as error:
        raise PromptError(f"{path}: {explain(error)}") from error
    except (yaml.YAMLError, jinja2.TemplateError, ValueError) as error:  # ValueError: a date that is none, in YAML
        raise PromptError(f"{path}: {error}") from error
    if unknown := set(front.inputs) - INPUTS.keys():
        raise PromptError(f"{path}: unknown inputs {sorted(unknown)}; the inputs are {', '.join(INPUTS)}")
    if named != set(front.inputs) - {CONVERSATION}:
        found = f"declares the inputs {sorted(front.inputs)} and uses {sorted(named)}"
        raise PromptError(
            f"{path}: {found}; the two must agree ({CONVERSATION} is placed before the question by itself)"
        )
    system = _text(shipped("prompts") / "system.md").strip()
    return Prompt(path.stem, front.description, tuple(front.inputs), front.source, system, body.strip())


@cache
def _template(question: str) -> jinja2.Template:
    return _jinja().from_string(question)


@cache
def _jinja() -> jinja2.Environment:
    # What is rendered is text for a model and not HTML; what fills the holes is fenced.
    return jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False, keep_trailing_newline=False)  # noqa: S701


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        there = ", ".join(sorted(file.stem for file in path.parent.glob("*.md") if file.stem != "system"))
        raise PromptError(f"{path}: there is no such prompt; there are: {there or 'none'}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise PromptError(f"{path}: cannot be read: {error}") from error
