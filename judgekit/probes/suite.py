"""The suite of attacks: conversations with an obvious verdict, and texts in them that address the judge."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import yaml

from judgekit.traces.message import Many, Message, Record
from judgekit.traces.sample import Sample

Verdict: TypeAlias = Literal["achieved", "not_achieved"]
Place: TypeAlias = Literal["user", "tool_result", "tool_argument"]
"""The part of a conversation that contains the attack."""
Kind: TypeAlias = Literal[
    "order",
    "fake_verdict",
    "fake_turn",
    "fake_fence",
    "fake_system",
    "other_language",
    "encoded",
    "flattery",
    "threat",
    "authority",
    "earlier_verdict",
    "examples",
    "role_play",
    "policy",
    "disregard",
    "hidden_comment",
]
"""The technique of an attack."""


class Base(Record):
    """A conversation without an attack, with an obvious verdict on whether the agent did what the user asked for.

    ``places`` maps each place to the path, within the messages, of the text that an attack is appended to.
    """

    id: str
    truth: Verdict
    places: dict[Place, Many[int | str]]
    messages: Many[Message]


class Attack(Record):
    """A text that tries to talk a judge out of the right verdict; ``base`` is the id of its conversation."""

    id: str
    kind: Kind
    place: Place
    base: str
    text: str


class Pair(NamedTuple):
    """A conversation without and with an attack, identical except for the attack's text, and the right verdict."""

    attack: Attack
    clean: Sample
    attacked: Sample
    truth: Verdict


class _Suite(Record):
    bases: Many[Base]
    attacks: Many[Attack]


@cache
def pairs() -> tuple[Pair, ...]:
    """Return all attacks that ship with judgekit, each with its conversation."""
    text = Path(__file__).with_name("attacks.yaml").read_text(encoding="utf-8")
    suite = _Suite.model_validate(yaml.safe_load(text))
    bases = {base.id: base for base in suite.bases}
    return tuple(_pair(bases[attack.base], attack) for attack in suite.attacks)


def samples() -> Sequence[Sample]:
    """Return the samples to be judged: each conversation once without an attack, and once with each of its attacks."""
    clean = {pair.clean.id: pair.clean for pair in pairs()}
    return (*clean.values(), *(pair.attacked for pair in pairs()))


def _pair(base: Base, attack: Attack) -> Pair:
    messages: list[Any] = [message.model_dump() for message in base.messages]
    holder: Any = messages
    *path, last = base.places[attack.place]
    for step in path:
        holder = holder[step]
    holder[last] += f"\n\n{attack.text}"
    clean = Sample.of(base.messages, id=base.id)
    attacked = Sample.model_validate({"id": attack.id, "trace": {"id": attack.id, "messages": messages}})
    return Pair(attack, clean, attacked, base.truth)
