"""Replies in Redis: how they are stored, and what is done about damaged ones."""

import json
import logging
import zlib
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.errors import ConfigError, StoreError
from judgekit.judges.cache.redis_replies import _VERSION, RedisReplies, _checksum
from judgekit.judges.cache.replies import Claim, RecordedReply
from judgekit.judges.cache.store import add_replies
from judgekit.judges.redis.server import RedisServer
from judgekit.judges.request import Reply
from judgekit.traces.message import Usage

AT = datetime(2026, 11, 24, 12, tzinfo=UTC)
REPLY = Reply(
    text='{"goals": [{"goal": "To book a table.", "end_state": "It is booked.", "reason": "The agent booked it.", '
    '"evidence": [2], "verdict": "achieved"}]}',
    model="gpt-6-luna-2026-08-01",
    usage=Usage(input_tokens=1_812, output_tokens=96),
    cost_usd=0.000229,
)


@pytest.fixture
def server(redis_server):
    server = RedisServer(redis_server.address)
    yield server
    server.close()


def line(question, reply=REPLY, **changes):
    asked = question(**changes)
    return RecordedReply(
        key=asked.key, judge=asked.judge, prompt=asked.prompt, digests=asked.digests, recorded_at=AT, reply=reply
    )


def test_a_reply_takes_half_of_its_json(question, server):
    replies, one = RedisReplies(server), line(question)
    value = replies._packed(one, REPLY, AT)
    assert replies._unpacked(one.key, value) == one
    assert len(value) < len(one.model_dump_json(exclude_defaults=True)) * 0.6


@given(st.text(st.characters(codec=None)), st.sampled_from(["a" * 64, "k", "\udc80", ""]))
def test_any_text_can_be_stored_under_any_key(text, key):
    kept = RecordedReply.model_construct(key=key, judge="j", prompt=text, digests={}, recorded_at=AT)
    replies = RedisReplies(None)
    read = replies._unpacked(key, replies._packed(kept, Reply(text=text), AT))
    assert read.reply.text == read.prompt == text.encode(errors="replace").decode()


@pytest.mark.parametrize(
    "spoil", [lambda value: value[:-1], lambda value: value[:20] + b"?" + value[21:], lambda _: b""]
)
def test_a_damaged_reply_is_deleted_and_asked_for_again(redis_server, server, question, spoil, caplog):
    replies, key = RedisReplies(server), question().key
    replies.put(question(), REPLY)
    (name,) = redis_server.client.keys("jk1:r:*")
    for work, outcome in (
        (lambda: replies.get(key), None),
        (lambda: replies.claim(Claim(key, "t")), True),
        (lambda: replies.put(question(), Reply(text="new")), Reply(text="new")),
    ):
        redis_server.client.set(name, spoil(redis_server.client.get(name) or b"x" * 99))
        assert work() == outcome
    assert caplog.record_tuples == [("judgekit", logging.WARNING, "redis://fake.test: ignoring a damaged reply")] * 3


def test_replies_of_a_newer_judgekit_are_an_error_and_left_alone(redis_server, server, question):
    replies = RedisReplies(server)
    replies.put(question(), REPLY)
    (name,) = redis_server.client.keys("jk1:r:*")
    redis_server.client.set(name, newer := b"\x02" + redis_server.client.get(name)[1:])
    with pytest.raises(StoreError, match="holds replies of a newer judgekit; update judgekit, or use another database"):
        replies.get(question().key)
    assert redis_server.client.get(name) == newer


def test_replies_are_added_listed_and_pruned(server, question):
    replies = RedisReplies(server)
    lines = [line(question, repeat=repeat, prompt=f"{'ab'[repeat % 2]}@1") for repeat in range(30)]
    lines.append(RecordedReply(key="by hand", judge="j", prompt="a", reply=REPLY))
    assert add_replies(replies, lines, replace=False) == (31, 0, 0)
    other = lines[0].model_copy(update={"reply": Reply(text="other")})
    assert add_replies(replies, [lines[1], other], replace=False) == (0, 1, 1)
    assert [*replies.recorded()][1:] == sorted(lines[:-1], key=lambda one: (one.prompt, one.key))
    assert add_replies(replies, [other], replace=True) == (0, 0, 1)
    assert other in replies.recorded()
    assert replies.prune("a*", "openai/*", AT, dry_run=False) == 0
    assert replies.prune("b", "openai/*", None, dry_run=True) == replies.prune("b", "*", None, dry_run=False) == 15
    assert {one.prompt for one in replies.recorded()} == {"a@1", "a"}


# Redis that others can write to

SIGNING_TEXT = "a secret of more than sixteen characters"


def sealed(key, text):
    """An entry with the right checksum, which anybody can compute."""
    body = zlib.compress(text.encode())
    return _VERSION + _checksum(key, body) + body


def fields(judge="j", prompt="p@1", digests=None, at=1_700_000_000, reply=None):
    return json.dumps([judge, prompt, {} if digests is None else digests, at, reply or {"text": "forged"}])


DEEP = "[" * 100_000
MALFORMED = {
    "a time of 1e30": fields(at=1e30),
    "a time that is no number": fields(at="now"),
    "a cost that is NaN": fields(reply={"text": "forged", "cost_usd": float("nan")}),
    "nesting": DEEP,
    "nesting in a reply": fields(reply="R").replace('"R"', DEEP + "]" * 100_000),
    "a lone surrogate": fields(reply={"text": "\ud800"}),
    "another type of text": fields(reply={"text": ["x"]}),
    "other digests": fields(digests=[1]),
    "too few fields": "[1]",
    "a long text": fields(reply={"text": "x" * 20_000_000}),
    "a number of 5,000 digits": fields(at="T").replace('"T"', "9" * 5_000),
}


def spoiled(redis_server, name):
    """What others than judgekit may have put under a name."""
    yield lambda: redis_server.client.set(name, b"x" * 20_000_000)
    yield lambda: redis_server.client.rpush(name, "x")
    yield lambda: redis_server.client.hset(name, "requests", "x")
    yield lambda: redis_server.client.set(name, b"")


def test_a_malformed_entry_is_dropped_and_asked_for_again(redis_server, server, question, caplog):
    for name, text in MALFORMED.items():
        replies, key = RedisReplies(server), question().key
        redis_server.client.flushall()
        redis_server.client.set(f"jk1:r:{key}", sealed(key, text))
        assert replies.claim(Claim(key, "t")) is True, name
        assert replies.put(question(), REPLY) == REPLY
        assert replies.get(key) == REPLY
    assert caplog.messages == ["redis://fake.test: ignoring a damaged reply"] * len(MALFORMED)


def test_an_entry_of_another_kind_is_dropped_and_asked_for_again(redis_server, server, question, caplog):
    replies, key = RedisReplies(server), question().key
    for spoil in spoiled(redis_server, f"jk1:r:{key}"):
        for work, outcome in (
            (lambda: replies.get(key), None),
            (lambda: replies.claim(Claim(key, "t")), True),
            (lambda: replies.put(question(), REPLY), REPLY),
        ):
            redis_server.client.delete(f"jk1:r:{key}")
            spoil()
            assert work() == outcome
    assert caplog.messages == ["redis://fake.test: ignoring a damaged reply"] * 12


def test_nobody_waits_for_a_claim_that_never_ends_or_is_none(redis_server, server, question):
    replies, key = RedisReplies(server), question().key
    claim = f"jk1:c:{key}"
    redis_server.client.set(claim, "another", px=9_000)
    assert replies.claim(Claim(key, "t")) is False
    for spoil in spoiled(redis_server, claim):
        redis_server.client.delete(claim)
        spoil()
        assert replies.claim(Claim(key, "t")) is True
    redis_server.client.set(claim, "another", px=10**12)
    assert replies.claim(Claim(key, "t")) is True
    replies.renew([Claim(key, "t")])
    assert 0 < redis_server.client.pttl(claim) <= 10_000


def test_what_lists_replies_names_what_it_skips(redis_server, server, question, caplog):
    replies, kept = RedisReplies(server), line(question)
    add_replies(replies, [kept], replace=False)
    for number, text in enumerate(MALFORMED.values()):
        redis_server.client.set(f"jk1:r:bad{number}", sealed(f"bad{number}", text))
    redis_server.client.rpush("jk1:r:list", "x")
    redis_server.client.set(b"jk1:r:\xff", "x")
    assert [*replies.recorded()] == [kept]
    assert replies.prune("*", "*", None, dry_run=True) == 1
    assert [message.partition(": jk1:")[0] for message in caplog.messages] == [
        f"redis://fake.test: skipped {len(MALFORMED) + 2} keys without an intact reply"
    ] * 2
    assert "jk1:r:" in caplog.messages[0]


def test_a_reply_that_is_longer_than_a_judge_takes_is_dropped(server, question):
    RedisReplies(server).put(question(), Reply(text="x" * 300_000))
    assert RedisReplies(server).get(question().key) is not None
    assert RedisReplies(server, max_reply_bytes=100_000).get(question().key) is None


def test_with_a_secret_only_signed_replies_count(redis_server, server, question, monkeypatch, caplog):
    key, name = question().key, f"jk1:r:{question().key}"
    unsigned = RedisReplies(server)._packed(line(question), Reply(text="forged"), AT)
    monkeypatch.setenv("JUDGEKIT_CACHE_SECRET", SIGNING_TEXT)
    replies = RedisReplies(server)
    redis_server.client.set(name, unsigned)
    assert replies.claim(Claim(key, "t")) is True
    assert replies.put(question(), REPLY) == replies.get(key) == REPLY
    signed = redis_server.client.get(name)
    assert next(iter(replies.recorded())).reply == REPLY
    other = question(repeat=1)
    redis_server.client.set(f"jk1:r:{other.key}", signed)
    assert replies.get(other.key) is None
    monkeypatch.setenv("JUDGEKIT_CACHE_SECRET", SIGNING_TEXT[1:])
    assert RedisReplies(server, read_only=True).get(key) is None
    assert redis_server.client.get(name) == signed
    monkeypatch.delenv("JUDGEKIT_CACHE_SECRET")
    with pytest.raises(StoreError, match="holds signed replies; set JUDGEKIT_CACHE_SECRET to the secret of those"):
        RedisReplies(server).get(key)
    assert redis_server.client.get(name) == signed
    assert caplog.messages == ["redis://fake.test: ignoring a damaged reply"] * 3


def test_a_signature_holds_for_one_reply_under_one_key(server, question, monkeypatch):
    monkeypatch.setenv("JUDGEKIT_CACHE_SECRET", SIGNING_TEXT)
    replies, kept = RedisReplies(server), line(question)
    value = replies._packed(kept, REPLY, AT)
    assert replies._unpacked(kept.key, value) == kept
    assert SIGNING_TEXT.encode() not in value
    content = value[9:]
    for at in range(0, len(content), 7):
        changed = content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
        assert replies._unpacked(kept.key, value[:1] + _checksum(kept.key, changed) + changed) is None


def test_a_secret_that_can_be_guessed_is_an_error(server, monkeypatch):
    monkeypatch.setenv("JUDGEKIT_CACHE_SECRET", "short")
    with pytest.raises(
        ConfigError, match="JUDGEKIT_CACHE_SECRET: needs at least 16 characters, as openssl rand -hex 32"
    ):
        RedisReplies(server)
