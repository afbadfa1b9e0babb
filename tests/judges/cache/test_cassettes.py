"""Cassettes: JSONL files of replies that a team commits and replays."""

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.errors import StoreError
from judgekit.judges.cache.cassettes import Cassette, write_cassette
from judgekit.judges.cache.replies import RecordedReply
from judgekit.judges.request import Reply
from judgekit.traces.message import Usage

REPLY = Reply(text='{"good": "é\\u0000"}', model="m", usage=Usage(input_tokens=3, extra={"a": [1]}), cost_usd=0.1)


def line(question, reply=REPLY):
    return RecordedReply(
        key=question.key, digests=question.digests, prompt=question.prompt, reply=reply
    ).model_dump_json()


# Reading


def test_a_recorded_reply_is_found_by_its_key(question, tmp_path):
    path = tmp_path / "replies.jsonl"
    lines = ['{"note": "Written by hand."}', line(question()), line(question(repeat=1), Reply(text="two"))]
    path.write_text("\n".join(lines), encoding="utf-8")
    replies = Cassette(path)
    assert asyncio.run(replies.get(question().key)) == REPLY
    assert asyncio.run(replies.get(question(repeat=1).key)) == Reply(text="two")
    assert asyncio.run(replies.get(question(repeat=2).key)) is None
    assert asyncio.run(replies.get("")) is None
    assert asyncio.run(replies.digests()) == [
        ("goodness", question().digests),
        ("goodness", question(repeat=1).digests),
    ]
    assert [one.key for one in replies.recorded()] == [question().key, question(repeat=1).key]
    asyncio.run(replies.aclose())


def test_a_line_without_the_parts_of_its_request_is_a_reply_all_the_same(tmp_path):
    path = tmp_path / "replies.jsonl"
    path.write_text('{"key": "k", "sample": "s", "reply": {"text": "fine"}}')
    replies = Cassette(path)
    assert asyncio.run(replies.get("k")) == Reply(text="fine")
    assert asyncio.run(replies.digests()) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param(b'{"note": "x"}\n{"key": "k"}\n', ", line 2: reply is missing", id="no reply"),
        pytest.param(b'{"note": "x"}\n{"reply": {"text": ""}}\n', ", line 2: key is missing", id="no key"),
        pytest.param(b'{"note": "x"}\nnonsense\n', ", line 2: the record: Invalid JSON", id="no JSON"),
        pytest.param(b'{"note": "x"}\n<<<<<<< HEAD\n', ", line 2: the record: Invalid JSON", id="conflict of git"),
        pytest.param(b'{"key": "k", "answer": {}}', ", line 1: answer: Extra inputs", id="unknown field"),
        pytest.param(b'{"key": "k", "reply": {"text": 3}}', ", line 1: reply.text: Input should be", id="no text"),
        pytest.param(
            b'{"key": "k", "recorded_at": "2026-11-20T10:00:00"}',
            ", line 1: recorded_at: Input should have timezone",
            id="time",
        ),
        pytest.param(b"\xff\xfe", ": cannot be read: 'utf-8' codec", id="no UTF-8"),
        pytest.param(None, ": cannot be read: [Errno 2] No such file", id="missing"),
    ],
)
def test_a_cassette_that_cannot_be_read_is_reported_with_its_line(tmp_path, text, found):
    path = tmp_path / "replies.jsonl"
    if text is not None:
        path.write_bytes(text)
    with pytest.raises(StoreError) as info:
        Cassette(path)
    assert str(info.value).startswith(f"{path}{found}")


def test_two_replies_to_one_request_are_an_error_that_names_both_lines(question, tmp_path):
    path = tmp_path / "replies.jsonl"
    one, other = line(question()), line(question(), Reply(text="other"))
    path.write_text("\n".join(['{"note": "Merged."}', one, line(question(repeat=1)), one, other]), encoding="utf-8")
    with pytest.raises(StoreError) as info:
        Cassette(path)
    assert str(info.value) == (
        f"{path}, lines 2 and 5: two replies to the same request, perhaps from a merge of two recordings; delete one of them"
    )


def test_a_line_that_stands_there_twice_is_one_reply(question, tmp_path):
    path = tmp_path / "replies.jsonl"
    path.write_text("\n".join([line(question())] * 3), encoding="utf-8")
    replies = Cassette(path)
    assert asyncio.run(replies.get(question().key)) == REPLY
    assert len(list(replies.recorded())) == 1


# Writing


def test_a_cassette_has_a_line_for_each_reply_with_what_is_known_and_no_more(question, tmp_path):
    path = tmp_path / "out.jsonl"
    at = datetime(2026, 11, 20, 10, 11, 12, tzinfo=UTC)
    full = RecordedReply(key="k", digests={"model": "1"}, judge="openai/m", prompt="p@1", recorded_at=at, reply=REPLY)
    assert write_cassette(path, [full, RecordedReply(key="j", reply=Reply(text="é"))]) == 2
    assert path.read_bytes().decode() == (
        '{"key": "k", "digests": {"model": "1"}, "judge": "openai/m", "prompt": "p@1", "recorded_at": "2026-11-20T10:11:12Z",'
        ' "reply": {"text": "{\\"good\\": \\"é\\\\u0000\\"}", "model": "m", "usage": {"input_tokens": 3,'
        ' "extra": {"a": [1]}}, "cost_usd": 0.1}}\n'
        '{"key": "j", "reply": {"text": "é"}}\n'
    )


LINES = st.lists(
    st.builds(
        RecordedReply,
        key=st.text(min_size=1),
        digests=st.dictionaries(st.text(), st.text(), max_size=2),
        judge=st.text(),
        prompt=st.text(),
        recorded_at=st.none() | st.datetimes(timezones=st.just(UTC)),
        reply=st.builds(Reply, text=st.text(), cost_usd=st.none() | st.floats(0, 1e6)),
    ),
    unique_by=lambda line: line.key,
    max_size=3,
)


@given(lines=LINES)
def test_what_is_written_reads_back_as_it_was_whatever_it_says(tmp_path_factory, lines):
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    write_cassette(path, lines)
    assert list(Cassette(path).recorded()) == lines
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) == len(lines)
    assert all(one.isprintable() for one in text.splitlines())


def test_a_cassette_holds_nothing_that_would_steer_a_terminal_or_break_a_line(tmp_path):
    path = tmp_path / "out.jsonl"
    said = "\x1b[31m\x9b31m\u2028\u202e\U000e0041"
    write_cassette(path, [RecordedReply(key="k", reply=Reply(text=said))])
    assert path.read_bytes().decode() == (
        '{"key": "k", "reply": {"text": "\\u001b[31m\\u009b31m\\u2028\\u202e\\udb40\\udc41"}}\n'
    )
    assert json.loads(path.read_text())["reply"]["text"] == said


def broken(lines):
    yield from lines
    raise StoreError("the cache: cannot be read any further")


def test_a_cassette_takes_the_place_of_an_older_one_only_when_it_is_whole(tmp_path):
    path = tmp_path / "out.jsonl"
    path.write_text("older")
    with pytest.raises(StoreError, match="any further"):
        write_cassette(path, broken([RecordedReply(key="k", reply=REPLY)]))
    assert [file.name for file in tmp_path.iterdir()] == ["out.jsonl"]
    assert path.read_text() == "older"
    write_cassette(path, [])
    assert path.read_text() == ""
    assert [file.name for file in tmp_path.iterdir()] == ["out.jsonl"]


@pytest.mark.parametrize(
    ("name", "found"),
    [("", "not a file; name another"), ("no/such/folder/out.jsonl", "[Errno 2] No such file or directory")],
)
def test_a_cassette_that_cannot_be_written_is_reported_in_words(tmp_path, name, found):
    with pytest.raises(StoreError) as info:
        write_cassette(tmp_path / name, [])
    assert str(info.value).startswith(f"{tmp_path / name}: cannot be written: {found}")
    assert list(Path(tmp_path).iterdir()) == []
