"""``judgekit pair``."""

import io
import json
import re
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judgekit.formats.reading import read
from judgekit.traces.message import AIMessage, HumanMessage
from judgekit.traces.sample import Sample

PAIRS = Path("pairs.jsonl")


@pytest.fixture
def cli(cli) -> Callable[..., tuple]:
    """Runs ``judgekit pair`` as the shell would."""
    return partial(cli, "pair")


def samples(said: str, ids: Iterable[str], **known: object) -> list[Sample]:
    return [Sample.of([HumanMessage("Hi"), AIMessage(f"{said} {one}")], id=one, **known) for one in ids]


def write(name: str, found: Iterable[Sample]) -> Path:
    path = Path(name)
    path.write_text("".join(one.model_dump_json() + "\n" for one in found), encoding="utf-8")
    return path


def chats(name: str, *rows: dict) -> Path:
    """A file as OpenAI's API has it."""
    path = Path(name)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def chat(said: str, **beside: object) -> dict:
    return {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": said}], **beside}


def last_words(path: Path = PAIRS) -> dict[str, tuple[str, str]]:
    """What trace and baseline end with, by id."""
    return {one.id: (one.trace.messages[-1].text, one.baseline.messages[-1].text) for one in read(path, "judgekit")}


def test_samples_are_joined_by_id_and_stand_in_the_order_of_the_first_file(cli):
    first = write("a.jsonl", samples("a", "xyz", reference="done", group="g"))
    second = write("b.jsonl", samples("b", "zxy", reference="another"))
    ended = cli(first, second, "-o", PAIRS)
    assert ended == (0, "", "wrote pairs.jsonl: 3 pairs\n")
    assert list(last_words().items()) == [(one, (f"a {one}", f"b {one}")) for one in "xyz"]
    mine, baselines = list(read(first)), {one.id: one.trace for one in read(second)}
    assert list(read(PAIRS)) == [one.model_copy(update={"baseline": baselines[one.id]}) for one in mine]


# --- what is left over


def test_what_is_in_one_file_alone_is_counted_and_named_and_the_rest_is_joined(cli):
    first = write("a.jsonl", samples("a", ["both", *(f"a{index}" for index in range(7))]))
    second = write("b.jsonl", samples("b", ["b0", "both"]))
    ended = cli(first, second, "-o", PAIRS)
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.splitlines() == [
        "7 ids only in a.jsonl: 'a0', 'a1', 'a2', 'a3', 'a4', and 2 more",
        "1 id only in b.jsonl: 'b0'",
        "wrote pairs.jsonl: 1 pair",
    ]
    assert list(last_words()) == ["both"]


def test_what_cannot_be_read_is_counted_once_and_the_rest_is_joined(cli):
    files = [write(f"{name}.jsonl", samples(name, "xy")) for name in "ab"]
    for path in files:
        path.write_text('{"trace": 3}\n' + path.read_text())
    ended = cli(*files, "-o", PAIRS)
    assert ended.code == 1
    assert ended.err.startswith("2 records could not be read:\n  a.jsonl (line 1): ")
    assert "\n  b.jsonl (line 1): " in ended.err
    assert ended.err.count("(line 1)") == 2
    assert list(last_words()) == ["x", "y"]


def test_recordings_without_an_id_go_by_their_place_which_is_said(cli):
    first = chats("a.jsonl", chat("a0"), chat("a1"), chat("a2", id="named"))
    second = chats("b.jsonl", chat("b0"), chat("b1"), chat("b2", id="named"))
    ended = cli(first, second, "-o", PAIRS)
    assert (ended.code, list(last_words().values())) == (0, [("a0", "b0"), ("a1", "b1"), ("a2", "b2")])
    assert ended.err.startswith(
        "2 pairs may be identified only by their place in the files, counted from 0: if so, both"
    )


def test_an_id_cannot_steer_the_terminal(cli):
    first = write("a.jsonl", samples("a", ["x", "evil\x1b[2J\u202e\n"]))
    ended = cli(first, write("b.jsonl", samples("b", "x")), "-o", PAIRS)
    assert ended.err.startswith("1 id only in a.jsonl: 'evil\\x1b[2J\\u202e\\n'\n")


ids = st.lists(st.sampled_from("uvwxyz"), min_size=1, max_size=7)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ids, ids)
def test_a_pair_is_written_for_every_id_that_stands_once_in_both_and_for_no_other(cli, first, second):
    PAIRS.unlink(missing_ok=True)
    ended = cli(write("a.jsonl", samples("a", first)), write("b.jsonl", samples("b", second)), "-o", PAIRS)
    joined = [one for one in first if first.count(one) == second.count(one) == 1]
    whole = len(joined) == len(first) == len(second)
    assert ended.code == (0 if whole else 1 if joined else 2)
    assert (re.search(r"(?m)^\d+ ids? ", ended.err) is None) is whole
    assert ended.err.count("wrote pairs.jsonl: ") == bool(joined)
    assert PAIRS.exists() is bool(joined)
    if joined:
        assert list(last_words().items()) == [(one, (f"a {one}", f"b {one}")) for one in joined]


# --- what is an error


def test_where_nothing_can_be_joined_nothing_is_written(cli):
    PAIRS.write_text("older")
    ended = cli(write("a.jsonl", samples("a", "x")), write("b.jsonl", samples("b", "y")), "-o", PAIRS)
    assert (ended.code, ended.out, PAIRS.read_text()) == (2, "", "older")
    assert ended.err.splitlines() == [
        "1 id only in a.jsonl: 'x'",
        "1 id only in b.jsonl: 'y'",
        "judgekit: a.jsonl: nothing was written: no id occurs exactly once in both this file and b.jsonl",
    ]


@pytest.mark.parametrize("output", ["a.jsonl", "./b.jsonl"])
def test_a_file_that_is_read_is_not_written(cli, output):
    files = [write(f"{name}.jsonl", samples(name, "x")) for name in "ab"]
    before = [path.read_text() for path in files]
    ended = cli(*files, "-o", output)
    assert (ended.code, [path.read_text() for path in files]) == (2, before)
    assert "is an input file; choose another" in ended.err


@pytest.mark.parametrize("place", [0, 1])
def test_either_file_may_be_standard_input(cli, monkeypatch, place):
    files = [write(f"{name}.jsonl", samples(name, "x")) for name in "ab"]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(files[place].read_bytes())))
    files[place] = Path("-")
    assert cli(*files, "-o", PAIRS) == (0, "", "wrote pairs.jsonl: 1 pair\n")
    assert last_words() == {"x": ("a x", "b x")}


def test_an_output_that_cannot_be_written_is_said_in_words(cli):
    files = [write(f"{name}.jsonl", samples(name, "x")) for name in "ab"]
    ended = cli(*files, "-o", "missing/pairs.jsonl")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("judgekit: --output missing/pairs.jsonl: cannot be written: ")
