"""The contract of every store of replies."""

import asyncio
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from judgekit.errors import StoreError
from judgekit.judges.cache.redis_replies import RedisReplies
from judgekit.judges.cache.replies import Claim, ReplyDatabase
from judgekit.judges.cache.store import ReplyStore
from judgekit.judges.redis.server import RedisServer
from judgekit.judges.request import Reply

REPLY, OTHER = Reply(text="fine"), Reply(text="other")


def stored_in(folder):
    path = folder / "cache.sqlite"
    return ReplyStore(ReplyDatabase(path), at_once=ReplyDatabase(path, waits=False))


def ended_in_sqlite(tmp_path):
    """End all leases, as time would."""
    database = sqlite3.connect(tmp_path / "cache.sqlite", isolation_level=None)
    database.execute("UPDATE claims SET until = ?", (time.time() - 1,))
    database.close()


@pytest.fixture
def in_sqlite(tmp_path):
    return lambda: stored_in(tmp_path), lambda: ended_in_sqlite(tmp_path)


@pytest.fixture
def in_redis(redis_server):
    return lambda: ReplyStore(RedisReplies(RedisServer(redis_server.address)), 32), redis_server.end_claims


@pytest.fixture(params=["in_sqlite", "in_redis"])
def kind(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def end_leases(kind):
    return kind[1]


@pytest.fixture
def two(kind):
    """Run a test with two stores of the same replies, as two processes have them."""

    def run(test):
        async def body():
            one, other = kind[0](), kind[0]()
            try:
                await test(one, other)
            finally:
                await one.aclose()
                await other.aclose()

        asyncio.run(body())

    return run


class TestStore:
    """What holds for each store."""

    def test_a_reply_is_seen_by_others_at_once(self, two, question):
        async def test(one, other):
            assert await other.get(question().key) is None
            assert await one.put(question(), REPLY) == REPLY
            assert await other.get(question().key) == await one.get(question().key) == REPLY
            assert await other.digests() == [("goodness", question().digests)]

        two(test)

    def test_the_first_reply_stands(self, two, question):
        async def test(one, other):
            assert await one.put(question(), REPLY) == REPLY
            assert await other.put(question(), OTHER) == REPLY
            assert await other.get(question().key) == REPLY

        two(test)

    def test_a_reply_is_replaced_on_purpose(self, two, question):
        async def test(one, other):
            await one.put(question(), REPLY)
            assert await other.put(question(), OTHER, replace=True) == OTHER
            assert await one.get(question().key) == OTHER

        two(test)

    def test_a_request_is_claimed_by_one_alone_until_it_is_released(self, two):
        async def test(one, other):
            assert await one.claim(Claim("k", "one")) is True
            assert await other.claim(Claim("k", "other")) is False
            assert await one.claim(Claim("k", "one again")) is False  # who asks twice waits for the first as well
            assert await other.claim(Claim("another", "other")) is True
            await one.release(Claim("k", "one"))
            assert await other.claim(Claim("k", "other")) is True

        two(test)

    def test_what_others_claimed_is_not_released(self, two):
        async def test(one, other):
            await one.claim(Claim("k", "one"))
            await other.release(Claim("k", "other"))
            assert await other.claim(Claim("k", "other")) is False

        two(test)

    def test_a_reply_ends_the_claim_and_answers_the_next_one(self, two, question):
        async def test(one, other):
            await one.claim(Claim(question().key, "one"))
            await one.put(question(), REPLY)
            assert await other.claim(Claim(question().key, "other")) == REPLY

        two(test)

    def test_a_claim_that_ended_is_anothers_and_its_holder_cannot_have_it_back(self, two, end_leases):
        async def test(one, other):
            await one.claim(Claim("k", "one"))
            end_leases()
            assert await other.claim(Claim("k", "other")) is True
            await asyncio.to_thread(one.renew, [Claim("k", "one")])
            await one.release(Claim("k", "one"))
            assert await one.claim(Claim("k", "one")) is False

        two(test)

    def test_a_claim_that_is_renewed_holds(self, two, end_leases):
        async def test(one, other):
            held = [Claim("k", "one"), Claim("l", "one")]
            for claim in held:
                await one.claim(claim)
            end_leases()
            await asyncio.to_thread(one.renew, held)
            assert [await other.claim(Claim(key, "other")) for key in "kl"] == [False, False]

        two(test)

    def test_a_holder_that_stalled_gets_the_reply_that_stands(self, two, question, end_leases):
        async def test(one, other):
            key = question().key
            await one.claim(Claim(key, "one"))
            end_leases()
            await other.claim(Claim(key, "other"))
            assert await other.put(question(), REPLY) == REPLY
            assert await one.put(question(), OTHER) == REPLY
            assert await other.get(key) == REPLY

        two(test)

    def test_of_many_at_once_one_claims_each_request(self, two):
        async def test(one, other):
            claims = [Claim(f"{key}", f"{token}") for key in range(50) for token in range(2)]
            granted = await asyncio.gather(*((one, other)[int(claim.token)].claim(claim) for claim in claims))
            assert sum(granted) == 50
            assert [sum(pair) for pair in zip(granted[::2], granted[1::2], strict=True)] == [1] * 50

        two(test)

    def test_what_is_begun_is_finished_where_the_caller_is_canceled(self, two, question):
        async def test(one, other):
            tasks = [asyncio.create_task(one.put(question(repeat=repeat), REPLY)) for repeat in range(20)]
            await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
            await one.aclose()
            assert [await other.get(question(repeat=repeat).key) for repeat in range(20)] == [REPLY] * 20

        two(test)


class Failing:
    """Replies of which one cannot be put."""

    def __init__(self, replies, key):
        self._replies, self._key = replies, key

    def __getattr__(self, name):
        return getattr(self._replies, name)

    def put(self, request, reply, /, **options):
        if request.key == self._key:
            raise StoreError("the disk is full")
        return self._replies.put(request, reply, **options)


def test_a_write_that_fails_fails_alone(tmp_path, question):
    async def ask():
        store = ReplyStore(Failing(ReplyDatabase(tmp_path / "cache.sqlite"), question(repeat=1).key))
        puts = [store.put(question(repeat=repeat), REPLY) for repeat in range(3)]
        ends = await asyncio.gather(*puts, return_exceptions=True)
        kept = [await store.get(question(repeat=repeat).key) for repeat in range(3)]
        await store.aclose()
        return ends, kept

    ends, kept = asyncio.run(ask())
    assert kept == [REPLY, None, REPLY]
    assert isinstance(ends[1], StoreError)


def test_while_another_program_writes_to_the_file_the_event_loop_goes_on(tmp_path, question):
    other = sqlite3.connect(tmp_path / "cache.sqlite", isolation_level=None, check_same_thread=False)
    loop_goes_on = threading.Event()

    def write():
        in_time = loop_goes_on.wait(5)
        other.execute("COMMIT")
        return in_time

    async def ask():
        store = stored_in(tmp_path)
        other.execute("BEGIN IMMEDIATE")
        with ThreadPoolExecutor(1) as thread:
            writing = thread.submit(write)
            put = asyncio.create_task(store.put(question(), REPLY))
            await asyncio.sleep(0)
            loop_goes_on.set()
            assert writing.result()
        assert await put == REPLY
        await store.aclose()

    asyncio.run(ask())
    other.close()


def test_the_thread_that_renews_claims_moves_the_log_into_the_file(tmp_path, question):
    file, claim = tmp_path / "cache.sqlite", Claim("other", "mine")

    async def ask():
        store = stored_in(tmp_path)
        await store.claim(claim)
        for repeat in range(50):
            await store.put(question(repeat=repeat), Reply(text="x" * 100_000))
        before = file.stat().st_size
        store.renew([claim])
        after = file.stat().st_size
        await store.aclose()
        return before, after

    before, after = asyncio.run(ask())
    assert before < 100_000
    assert after > 5_000_000


def test_replies_that_are_lost_since_redis_is_away_are_counted(redis_server, question, monkeypatch, caplog):
    def away(command):
        raise StoreError("redis://fake.test: Redis is away for 20 s")

    async def ask():
        server = RedisServer(redis_server.address)
        monkeypatch.setattr(server, "run", away)
        store = ReplyStore(RedisReplies(server))
        for repeat in range(2):
            with pytest.raises(StoreError, match="Redis is away"):
                await store.put(question(repeat=repeat), REPLY)
        await store.aclose()

    asyncio.run(ask())
    assert caplog.messages == [
        "redis://fake.test: could not store the replies to 2 paid requests, which will be sent again"
    ]
