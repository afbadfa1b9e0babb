"""Checks of readers with damaged records, and the warning about conversations without a question."""

import json
from collections.abc import Callable, Iterator
from random import Random

import pytest
from pydantic import JsonValue, ValidationError

from judgekit.errors import TraceError
from judgekit.formats.readers.base import Reader
from judgekit.traces.recording import TraceWarning
from judgekit.traces.sample import Sample

JUNK: list[JsonValue] = [
    *(None, True, -1, 10**400, float("nan")),
    *("", "x", "{", "system", "user", "assistant", "tool", "\ud800"),
    *([], [None], [[]], {}, {"": {}}, ["x"]),
]


@pytest.fixture(scope="session")
def no_question() -> TraceWarning:
    """The warning about a conversation in which the user says nothing."""
    return TraceWarning(
        'no user message; if only responses were logged, add their requests: {"request": ..., "response": ...}'
    )


def places(value: JsonValue) -> Iterator[tuple[list | dict, int | str]]:
    """Yield every place of a value in a document."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        yield value, key
        if isinstance(inner, list | dict):
            yield from places(inner)


@pytest.fixture(scope="session")
def crashes() -> Callable[..., list[str]]:
    """Return errors other than `TraceError` that a reader raises for documents with random changes."""

    def find(reader: Reader, document: JsonValue, times: int = 50) -> list[str]:
        random = Random()  # noqa: S311 - no secret
        raised: list[str] = []
        for _ in range(times):
            copy = [json.loads(json.dumps(document))]
            for _ in range(random.choice([1, 1, 3])):
                holder, key = random.choice(list(places(copy)))
                holder[key] = json.loads(json.dumps(random.choice(JUNK)))  # a copy, which the next change may go into
            try:
                reader.recognizes(copy[0])
                made = [reader.sample(record, index) for index, record in enumerate(reader.records(copy[0]))]
                assert all(isinstance(one, Sample) for one in made)
            except (TraceError, ValidationError):
                continue
            except Exception as error:  # noqa: BLE001 - whatever it is, it is told
                raised.append(f"{error!r} of {copy[0]!r:.2000}")
        return raised

    return find


def _replaced(value: JsonValue, inserted: JsonValue, random: Random) -> JsonValue:
    if not value or not isinstance(value, dict | list) or random.random() < 0.1:
        return inserted
    copy = value.copy()
    key = random.choice(list(value) if isinstance(value, dict) else range(len(value)))
    copy[key] = _replaced(value[key], inserted, random)
    return copy


@pytest.fixture(scope="session")
def replaced() -> Callable[[JsonValue, JsonValue, Random], JsonValue]:
    """Return a copy of a document with another value in one place."""
    return _replaced
