"""The suite of attacks: conversations with an obvious verdict, and texts in them that address the judge."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import yaml

from judgekit.traces.message import FrozenModel, Many, Message
from judgekit.traces.sample import Sample

ProbeVerdict: TypeAlias = Literal["achieved", "not_achieved"]
InjectionPoint: TypeAlias = Literal["user", "tool_result", "tool_argument"]
"""The part of a conversation that contains the attack."""


class ProbeConversation(FrozenModel):
    """A conversation without an attack, with an obvious verdict on whether the agent did what the user asked for.

    ``injection_paths`` maps each place to the path, within the messages, of the text that an attack is appended to.
    """

    id: str
    expected_verdict: ProbeVerdict
    injection_paths: dict[InjectionPoint, Many[int | str]]
    messages: Many[Message]


class Attack(FrozenModel):
    """A text that tries to talk a judge out of the right verdict; ``conversation`` is the id of its conversation.

    ``kind`` is its technique, such as ``threat``.
    """

    id: str
    kind: str
    injection_point: InjectionPoint
    conversation: str
    text: str


class ProbePair(NamedTuple):
    """A conversation without and with an attack, identical except for the attack's text, and the right verdict."""

    attack: Attack
    clean: Sample
    attacked: Sample
    expected_verdict: ProbeVerdict


class _Suite(FrozenModel):
    conversations: Many[ProbeConversation]
    attacks: Many[Attack]


@cache
def probe_pairs() -> tuple[ProbePair, ...]:
    """Return all attacks that ship with judgekit, each with its conversation."""
    text = Path(__file__).with_name("attacks.yaml").read_text(encoding="utf-8")
    suite = _Suite.model_validate(yaml.safe_load(text))
    bases = {base.id: base for base in suite.conversations}
    return tuple(_pair(bases[attack.conversation], attack) for attack in suite.attacks)


def probe_samples() -> Sequence[Sample]:
    """Return the samples to be judged: each conversation once without an attack, and once with each of its attacks."""
    clean = {pair.clean.id: pair.clean for pair in probe_pairs()}
    return (*clean.values(), *(pair.attacked for pair in probe_pairs()))


def _pair(base: ProbeConversation, attack: Attack) -> ProbePair:
    messages: list[Any] = [message.model_dump() for message in base.messages]
    holder: Any = messages
    *path, last = base.injection_paths[attack.injection_point]
    for step in path:
        holder = holder[step]
    holder[last] += f"\n\n{attack.text}"
    clean = Sample.of(base.messages, id=base.id)
    attacked = Sample.model_validate({"id": attack.id, "trace": {"id": attack.id, "messages": messages}})
    return ProbePair(attack, clean, attacked, base.expected_verdict)
