"""Checks for values of a recording that a reader loses, and of readers with damaged records."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from random import Random

import pytest
from pydantic import JsonValue, ValidationError

from judgekit.errors import TraceError
from judgekit.formats.conversations import _without_surrogates
from judgekit.formats.readers.base import Reader
from judgekit.traces.recording import TraceWarning
from judgekit.traces.sample import Sample


def leaves(value: JsonValue, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield every scalar in a document with its path, except ``None``."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from leaves(inner, f"{path}[{index}]")
    elif value is not None:
        yield path, repr(value)


@pytest.fixture(scope="session")
def lost() -> Callable[[JsonValue, Sample], set[str]]:
    """Return the paths of a record's values that appear nowhere in its sample."""

    def find(record: JsonValue, made: Sample) -> set[str]:
        kept = {value for _, value in leaves(json.loads(made.model_dump_json()))}
        return {path for path, value in leaves(record) if value not in kept}

    return find


def scalars_of(value: JsonValue, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the places of scalars in a document, except ``None``, including scalars in JSON text."""
    inner = parsed(value) if isinstance(value, str) else value
    if isinstance(inner, dict | list):
        for key, item in inner.items() if isinstance(inner, dict) else enumerate(inner):
            yield from scalars_of(item, (*path, key))
    elif value is not None:
        yield path


def changed(value: JsonValue, path: tuple[str | int, ...], random: Random) -> tuple[JsonValue, JsonValue]:
    """Return a copy of a document with another scalar in one place, and the new scalar."""
    if path:
        inner = parsed(value) if isinstance(value, str) else value
        copy, new = changed(inner[path[0]], path[1:], random)
        whole = (
            {**inner, path[0]: copy} if isinstance(inner, dict) else [*inner[: path[0]], copy, *inner[path[0] + 1 :]]
        )
        return (json.dumps(whole) if isinstance(value, str) else whole), new
    new = f"changed-{random.randrange(10**9)}"
    if isinstance(value, bool):
        new = not value
    elif isinstance(value, int | float):
        new = value + random.randrange(10**6) * 10**3 + 10**9 if isinstance(value, int) else value + random.random()
    return new, new


def parsed(text: str) -> JsonValue:
    try:
        return json.loads(text)
    except ValueError:
        return None


@pytest.fixture(scope="session")
def forgotten() -> Callable[..., list[str]]:
    """Return the paths of scalars in a document that a reader forgets.

    Each is changed in turn: what the reader makes of the document must then say so (a text must stand in it, anything
    else must make a difference), or name the place in a warning, or the document must be refused. Of scalars under the
    same keys two are tried, others each time; ``most`` says how many scalars in all.
    """

    def find(reader: Reader, document: JsonValue, most: int = 150) -> list[str]:
        def read(document: JsonValue) -> str:
            samples = [reader.sample(record, index) for index, record in enumerate(reader.records(document))]
            return "".join(sample.model_dump_json() for sample in samples)

        random = Random()  # noqa: S311 - no secret
        before = read(document)
        paths = list(scalars_of(document))
        random.shuffle(paths)
        tried: Counter[tuple[str, ...]] = Counter()
        missing: list[str] = []
        for path in paths:
            keys = tuple(step for step in path if isinstance(step, str))
            if tried[keys] == 2 or tried.total() == most:
                continue
            tried[keys] += 1
            copy, new = changed(document, path, random)
            try:
                after = read(copy)
            except (TraceError, ValidationError):
                continue
            kept = new in after if isinstance(new, str) else after != before
            where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
            if not kept and not named(where, after):
                missing.append(where)
        return missing

    def named(path: str, made: str) -> bool:
        """Return whether a warning names the place, or a place that contains it. Paths are relative to the record."""
        path = re.sub(r"^\.samples\[\d+\]", ".sample", path)  # of an Inspect log
        places = (place.strip(".") for place in re.findall(r'"path":"([^"]+)"', made))
        return any(place in path for place in places)

    return find


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
                records = map(_without_surrogates, reader.records(copy[0]))  # as files are read
                made = [reader.sample(record, index) for index, record in enumerate(records)]
                assert all(isinstance(one, Sample) for one in made)
            except (TraceError, ValidationError):
                continue
            except Exception as error:  # noqa: BLE001 - whatever it is, it is told
                raised.append(f"{error!r} of {copy[0]!r:.2000}")
        return raised

    return find


@pytest.fixture(scope="session")
def intact(forgotten, crashes) -> Callable[..., None]:
    """Check that a reader forgets nothing of documents, and that damage to them raises only errors of ours."""

    def check(reader: Reader, *documents: JsonValue, most: int = 60) -> None:
        for document in documents:
            assert forgotten(reader, document, most) == []
            assert crashes(reader, document, min(most, 50)) == []

    return check
