"""The inputs of prompts: what a sample fills, by name or by the path of a value."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from judgekit.errors import ContextError
from judgekit.traces.behavior import agents, handoffs
from judgekit.traces.images import ImageSettings
from judgekit.traces.rendering import Rendering, compact_json, fence_text
from judgekit.traces.sample import Sample
from judgekit.traces.sample_path import ValuePath, sample_value, value_text
from judgekit.traces.sentences import agent_sentences
from judgekit.traces.trace import Trace
from judgekit.traces.tree import branches
from judgekit.traces.turns import Turn, find_turns, numbered_sentences

CONVERSATION = "conversation"


class RenderOptions(NamedTuple):
    """Options for the rendering of conversations, see `Trace.render`, and the turns that a question is about."""

    budget_tokens: int | None = None
    images: ImageSettings | None = None
    tool_result_limit: int = 8_000
    turns: tuple[Turn, ...] = ()


@dataclass(frozen=True)
class PromptInput:
    """An input of prompts: whether a sample has it, and its text."""

    is_present: Callable[[Sample], bool]
    text: Callable[[Sample, RenderOptions], str]


def _is_not_blank(text: str | None) -> bool:
    return text is not None and bool(text.strip())


def _conversation(trace: Trace, options: RenderOptions) -> Rendering:
    budget, images, limit, _ = options
    try:
        return trace.render(budget_tokens=budget, images=images, tool_result_limit=limit)
    except ValueError as error:
        raise ContextError(f"conversation_tokens: {error}") from error


def _references(sample: Sample, _: RenderOptions) -> str:
    texts = sample.all_references
    names = ["reference"] if len(texts) == 1 else [f"reference {number}" for number in range(1, len(texts) + 1)]
    return "\n".join(map(fence_text, names, texts))


def _documents(sample: Sample, _: RenderOptions) -> str:
    return "\n".join(fence_text(f"document {number}", text) for number, text in enumerate(sample.documents or (), 1))


def _topics(sample: Sample, _: RenderOptions) -> str:
    lines = (f"{number}. {' '.join(topic.split())}" for number, topic in enumerate(sample.reference_topics or (), 1))
    return fence_text("topics", "\n".join(lines))


def _tools(sample: Sample, _: RenderOptions) -> str:
    """Return the tools of each agent by itself, since one agent may lack those of another.

    Of agents that share a conversation, recordings only have the tools of all.
    """
    shown: list[str] = []
    sharing = Counter(agent.path for agent in agents(sample.trace))
    for branch in branches(sample.trace):
        lines = [
            compact_json(tool.model_dump(include={"name", "description", "parameters"})) for tool in branch.trace.tools
        ]
        if lines and sharing[branch.path] > 1:
            lines = ["of several agents; not recorded which of them had which:", *lines]
        title = f"tools of sub-agent {branch.path}" if branch.path else "tools"
        shown.append(fence_text(title, "\n".join(lines or ["not recorded"])))
    return "\n".join(shown)


def _agents(sample: Sample, _: RenderOptions) -> str:
    return fence_text("agents", "\n".join(f"{number}. {agent}" for number, agent in enumerate(agents(sample.trace), 1)))


def _handoffs(sample: Sample, _: RenderOptions) -> str:
    return fence_text(
        "hand-offs", "\n".join(f"{number}. {handoff}" for number, handoff in enumerate(handoffs(sample.trace), 1))
    )


def _sentences(sample: Sample, options: RenderOptions) -> str:
    """Return the sentences, numbered, each on one line, so that none can pass for another."""
    listed = numbered_sentences(sample.trace, options.turns).items()
    lines = (f"{number}. (message {message}) {' '.join(text.split())}" for number, (message, _, _, text) in listed)
    return fence_text("sentences", "\n".join(lines))


def _turns(sample: Sample, options: RenderOptions) -> str:
    listed = options.turns or find_turns(sample.trace)
    return fence_text("turns", "\n".join(f"{number}. messages {first} to {last}" for number, first, last in listed))


PROMPT_INPUTS: dict[str, PromptInput] = {
    CONVERSATION: PromptInput(
        lambda sample: bool(sample.trace.messages), lambda sample, options: _conversation(sample.trace, options)
    ),
    "baseline": PromptInput(
        lambda sample: sample.baseline is not None and bool(sample.baseline.messages),
        lambda sample, options: _conversation(sample.baseline or Trace(), options),
    ),
    "reference": PromptInput(
        lambda sample: _is_not_blank(sample.reference),
        lambda sample, _: fence_text("reference", sample.reference or ""),
    ),
    "references": PromptInput(lambda sample: bool(sample.all_references), _references),
    "reference_topics": PromptInput(lambda sample: any(map(_is_not_blank, sample.reference_topics or ())), _topics),
    "documents": PromptInput(lambda sample: any(map(_is_not_blank, sample.documents or ())), _documents),
    "agents": PromptInput(lambda sample: len(agents(sample.trace)) > 1, _agents),
    "handoffs": PromptInput(lambda sample: bool(handoffs(sample.trace)), _handoffs),
    "sentences": PromptInput(lambda sample: bool(agent_sentences(sample.trace)), _sentences),
    "turns": PromptInput(lambda sample: bool(find_turns(sample.trace)), _turns),
    "tools": PromptInput(lambda sample: any(branch.trace.tools for branch in branches(sample.trace)), _tools),
    "fields": PromptInput(
        lambda sample: bool(sample.fields), lambda sample, _: fence_text("fields", compact_json(sample.fields))
    ),
}
"""The inputs that a sample fills, by name. All their text is data, and fenced."""
INPUT_PATHS = {"response": "response, response.NAME", "fields": "fields.NAME", "tool_calls": "tool_calls[0].name"}
"""The roots of further inputs, which are paths to values of a sample, and how they are written."""


@lru_cache(maxsize=256)
def prompt_input(name: str) -> PromptInput:
    """Return an input by its name, or by the path of a value such as ``fields.order.id``; see `sample_value`.

    Raises:
        ValueError: There is no such input.
    """
    if name in PROMPT_INPUTS:
        return PROMPT_INPUTS[name]
    path = ValuePath.parse(name)
    if path.root not in INPUT_PATHS or not (path.steps or path.root == "response"):
        raise ValueError(f"the inputs are {', '.join((*PROMPT_INPUTS, *INPUT_PATHS.values()))}")
    titles = [step for step in (path.root, *path.steps) if isinstance(step, str)]
    title = " ".join(titles[-1].split())
    return PromptInput(
        lambda sample: sample_value(sample, path) is not None,
        lambda sample, _: fence_text(title, value_text(sample_value(sample, path))),
    )
