"""The work that every tool is given, as plain data: conversations as OpenAI's chat API has them, texts and rankings."""

import json
import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

Call = tuple[str, dict[str, Any]]
"""A tool's name and its arguments."""

DEVIATING = 0.3
ORDERS = [f"#W{number:07}" for number in range(50)]
WORDS = [f"{stem}{end}" for stem in ("book", "find", "cancel", "table", "flight", "refund", "hotel", "order", "seat", "agent") for end in ("", "s", "ed", "ing", "er")]  # fmt: skip


def calls(number: int) -> list[Call]:
    """The four calls that conversation ``number`` should make: their arguments are nested, and no two are equal."""
    order = {"id": ORDERS[number % 50], "lines": [{"sku": f"S-{number}", "count": 2, "options": {"color": "black"}}]}
    return [
        ("find_customer", {"by": {"email": f"ann.{number}@example.com", "active": True}}),
        ("find_order", {"order": order, "fields": ["status", "items", "address"]}),
        ("change_address", {"order": order["id"], "to": {"city": "Austin", "zip": "78712", "lines": ["1 Elm St"]}}),
        ("notify", {"channel": "mail", "template": {"name": "address-changed", "values": {"order": order["id"]}}}),
    ]


def mutated(made: list[Call], way: int) -> list[Call]:
    """The calls with one of four mistakes: a wrong nested value, a call left out, one too many, two in another order."""
    if way == 0:
        return [*made[:2], ("change_address", {**made[2][1], "to": {"city": "Dallas", "zip": "75201"}}), made[3]]
    if way == 1:
        return [*made[:1], *made[2:]]
    if way == 2:
        return [*made, ("escalate", {"team": {"name": "returns", "level": 2}})]
    return [made[1], made[0], *made[2:]]


def pairs(numbers: Iterable[int], *, deviating: bool) -> Iterator[tuple[list[Call], list[Call]]]:
    """Calls that were made and calls that were expected in these conversations."""
    draw = random.Random(0)  # noqa: S311 - no secret
    for number in numbers:
        expected = calls(number)
        wrong = deviating and draw.random() < DEVIATING
        yield mutated(expected, draw.randrange(4)) if wrong else expected, expected


def messages(number: int, made: list[Call]) -> list[dict[str, Any]]:
    """A conversation in which the agent makes these calls one after another."""
    found: list[dict[str, Any]] = [
        {
            "role": "user",
            "content": f"Please send order {ORDERS[number % 50]} to 1 Elm St, Austin. I am guest {number}.",
        }
    ]
    for at, (name, args) in enumerate(made):
        call = {"id": f"call_{at}", "type": "function", "function": {"name": name, "arguments": json.dumps(args)}}
        found += [
            {"role": "assistant", "content": "One moment.", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"call_{at}", "content": '{"status": "ok", "found": [{"id": "r-1"}]}'},
        ]
    return [*found, {"role": "assistant", "content": "Your order now goes to 1 Elm St in Austin."}]


def transcript(number: int) -> str:
    """A conversation in words, for tools that take one text."""
    return "\n".join(
        f"{one['role']}: {one['content']} {json.dumps(one['tool_calls']) if 'tool_calls' in one else ''}".rstrip()
        for one in messages(number, calls(number))
    )


def records(numbers: Sequence[int], *, deviating: bool) -> Iterator[dict[str, Any]]:
    """Conversations with the calls that were expected."""
    for at, (number, (made, expected)) in enumerate(zip(numbers, pairs(numbers, deviating=deviating), strict=True)):
        known = [{"name": name, "args": args} for name, args in expected]
        yield {"id": f"c{at}", "messages": messages(number, made), "reference_tool_calls": known}


def write(path: Path, numbers: Sequence[int], *, deviating: bool) -> None:
    """Write these conversations as OpenAI Chat JSONL."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(record) + "\n" for record in records(numbers, deviating=deviating))


def parsed(path: Path) -> Iterator[dict[str, Any]]:
    with path.open("rb") as file:
        yield from map(json.loads, file)


def texts(words: int, number: int, turn: int) -> list[tuple[str, str]]:
    """Responses and references, other ones in each turn, since sacrebleu remembers those that it has seen."""
    draw = random.Random(f"{words} {turn}")  # noqa: S311 - no secret

    def text() -> str:
        drawn = draw.choices(WORDS, [1 / (rank + 1) for rank in range(len(WORDS))], k=words)
        return " ".join(f"{word}." if draw.random() < 0.1 else word for word in drawn)

    return [(text(), text()) for _ in range(number)]


def rankings(number: int) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, int]]]:
    """The scores of 100 documents for each query, in no order, and the grades of 20 of them."""
    draw = random.Random(0)  # noqa: S311 - no secret
    found: dict[str, dict[str, float]] = {}
    judged: dict[str, dict[str, int]] = {}
    for query in range(number):
        documents = [f"d{at}" for at in range(100)]
        found[f"q{query}"] = dict(zip(documents, map(float, draw.sample(range(10_000), 100)), strict=True))
        judged[f"q{query}"] = {one: draw.choice((0, 1, 2, 3)) for one in draw.sample(documents, 20)}
    return found, judged
