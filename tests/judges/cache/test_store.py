"""The contract of every store of replies."""

import asyncio
import sqlite3
import threading
import time
from pathlib import Path

import pytest

from judgekit.errors import StoreError
from judgekit.judges.cache.redis_replies import RedisReplyStore
from judgekit.judges.cache.replies import Claim
from judgekit.judges.cache.store import PUTS_PER_CHECKPOINT, SQLiteReplyStore
from judgekit.judges.redis.server import RedisServer
from judgekit.judges.request import Reply

REPLY, OTHER = Reply(text="fine"), Reply(text="other")


def ended_in_sqlite(tmp_path):
    """End all leases, as time would."""
    database = sqlite3.connect(tmp_path / "cache.sqlite", isolation_level=None)
    database.execute("UPDATE claims SET until = ?", (time.time() - 1,))
    database.close()


@pytest.fixture
def in_sqlite(tmp_path):
    return lambda: SQLiteReplyStore(tmp_path / "cache.sqlite"), lambda: ended_in_sqlite(tmp_path)


@pytest.fixture
def in_redis(redis_server):
    return lambda: RedisReplyStore(RedisServer(redis_server.address)), redis_server.end_claims


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
            assert list(await other.digests()) == list(await other.digests("goodness")) == [question().digests]
            assert list(await other.digests("badness")) == []

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
            await one.claim(Claim("k", "one"))
            assert [await other.get(question(repeat=repeat).key) for repeat in range(20)] == [REPLY] * 20

        two(test)


# SQLite


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "cache.sqlite"


async def locked(path):
    """A store in whose file another program writes for a moment, so that its writes wait."""
    store = SQLiteReplyStore(path)
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    threading.Timer(0.1, lambda: (other.execute("COMMIT"), other.close())).start()
    return store


async def unlocked(path):
    """A store that writes at once."""
    return SQLiteReplyStore(path)


def test_checkpoints_wait_for_the_disk_in_the_thread(path, question):
    async def ask():
        store = SQLiteReplyStore(path)
        threads = []
        checkpoint = store.file.checkpoint
        store.file.checkpoint = lambda: (threads.append(threading.current_thread()), checkpoint())
        for repeat in range(PUTS_PER_CHECKPOINT + 1):
            await store.put(question(repeat=repeat), REPLY)
        assert store.file._db.execute("PRAGMA wal_autocheckpoint").fetchone() == (0,)
        await store.in_thread(lambda: None)
        without_log = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
        (copied,) = without_log.execute("SELECT count(*) FROM replies").fetchone()
        without_log.close()
        await store.aclose()
        return threads, copied

    (thread,), copied = asyncio.run(ask())
    assert thread is not threading.main_thread()
    assert copied >= PUTS_PER_CHECKPOINT - 1


def test_closing_that_is_canceled_closes_all_the_same(path, question):
    async def ask():
        store = await locked(path)
        put = asyncio.create_task(store.put(question(), REPLY))
        await asyncio.sleep(0)
        closing = asyncio.create_task(store.aclose())
        await asyncio.sleep(0)
        closing.cancel()
        assert await put == REPLY
        return store

    store = asyncio.run(ask())
    store.thread.shutdown(wait=True)
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        store.file.get("k")


@pytest.mark.parametrize("opened", [unlocked, locked])
def test_a_write_that_fails_fails_alone(path, question, opened):
    async def ask():
        store = await opened(path)
        store.file._db.execute("PRAGMA max_page_count = 12")
        replies = [REPLY, Reply(text="x" * 100_000), REPLY]
        puts = [store.put(question(repeat=repeat), reply) for repeat, reply in enumerate(replies)]
        ends = await asyncio.gather(*puts, return_exceptions=True)
        kept = [await store.get(question(repeat=repeat).key) for repeat in range(3)]
        await store.aclose()
        return ends, kept

    ends, kept = asyncio.run(ask())
    assert kept == [REPLY, None, REPLY]
    assert (ends[0], ends[2]) == (REPLY, REPLY)
    assert isinstance(ends[1], StoreError)


@pytest.mark.parametrize(("opened", "uses_thread"), [(unlocked, False), (locked, True)])
def test_a_thread_writes_what_has_to_wait(path, question, opened, uses_thread):
    async def ask():
        store = await opened(path)
        writers = set[int]()
        store.file._db.set_trace_callback(lambda sql: writers.add(threading.get_ident()))
        assert await store.claim(Claim(question().key, "one"))
        assert await store.put(question(), REPLY) == REPLY
        store.file._db.set_trace_callback(None)
        await store.aclose()
        return writers != {threading.get_ident()}

    assert asyncio.run(ask()) is uses_thread
