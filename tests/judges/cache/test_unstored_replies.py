"""Replies that were paid for while Redis was away: none is lost, and none is stored elsewhere."""

import asyncio
import logging
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from judgekit.errors import StoreError
from judgekit.judges.cache.redis_replies import RedisReplyStore
from judgekit.judges.cache.unstored_replies import read_unstored
from judgekit.judges.judge import Judge
from judgekit.judges.layers import build_client
from judgekit.judges.redis.address import RedisAddress
from judgekit.judges.redis.server import RedisServer
from judgekit.judges.request import Reply
from judgekit.judges.structured_output import SchemaSupport

PAID = Reply(text="paid")
AWAY = StoreError("Redis is away")


@pytest.fixture
def store(redis_server):
    """A store whose server is away as long as the list has something in it."""
    made = RedisReplyStore(server := RedisServer(redis_server.address))
    made.away, ask = [], server.ask

    async def perhaps(command):
        if made.away:
            raise AWAY
        return await ask(command)

    server.ask = perhaps
    return made


def lose(store, question, **options):
    """Put a reply while the server is away, and close the store; without ``comes_back``, it stays away."""
    comes_back = options.pop("comes_back", False)

    async def test():
        store.away.append(True)
        with pytest.raises(StoreError, match="Redis is away"):
            await store.put(question(), PAID, **options)
        if comes_back:
            store.away.clear()
        await store.aclose()

    asyncio.run(test())


def files():
    return [*Path(".judgekit").glob("unstored-*")]


def test_the_next_client_stores_them(redis_server, store, question, caplog):
    lose(store, question)
    (path,) = files()
    (message,) = caplog.messages
    assert message == (
        f"redis://fake.test: the replies to 1 paid request could not be stored there and are in {path}. The next run in "
        "this folder stores them; elsewhere use judgekit cache import FILE --cache redis://fake.test"
    )
    assert Path(".judgekit/.gitignore").exists()

    async def again():
        judge = Judge("openai/x", base_url="http://localhost:1/v1", cache=redis_server.address.url)
        async with AsyncExitStack() as closing:
            client = await build_client(judge, None, SchemaSupport(), closing)
            assert await client.complete(question()) == PAID

    asyncio.run(again())
    assert files() == []


def test_an_earlier_reply_stands(redis_server, store, question):
    lose(store, question)

    async def again():
        other = RedisReplyStore(RedisServer(redis_server.address))
        await other.put(question(), Reply(text="first"))
        await asyncio.to_thread(other.restore)
        assert await other.get(question().key) == Reply(text="first")
        await other.aclose()

    asyncio.run(again())
    assert files() == []


def test_there_is_no_file_if_the_server_is_back_when_the_store_is_closed(redis_server, store, question):
    lose(store, question, comes_back=True)
    assert files() == []
    assert len(redis_server.client.keys("jk1:r:*")) == 1


def test_a_reply_that_replaces_another_is_not_kept_since_the_first_one_would_stand(store, question):
    lose(store, question, replace=True)
    assert files() == []


def test_they_are_for_their_server_alone(store, question):
    lose(store, question)
    assert list(read_unstored(RedisAddress("redis://another.test"))) == []
    assert len(files()) == 1


def test_a_file_that_another_process_has_just_deleted_is_skipped(redis_server, monkeypatch):
    monkeypatch.setattr(Path, "glob", lambda *_: [Path(".judgekit/unstored-deleted.jsonl")])
    assert list(read_unstored(redis_server.address)) == []


def test_a_damaged_file_is_an_error_that_names_it(redis_server, store, question):
    lose(store, question)
    (path,) = files()
    path.write_text("{")
    with pytest.raises(StoreError, match=f"{path}, line 1: "):
        list(read_unstored(redis_server.address))
    assert path.exists()


def test_if_no_file_can_be_written_the_log_says_what_is_lost(store, question, caplog):
    Path(".judgekit").write_text("a file")
    lose(store, question)
    ((name, level, message),) = caplog.record_tuples
    assert (name, level) == ("judgekit", logging.ERROR)
    assert message.startswith(
        "redis://fake.test: the replies to 1 paid request are lost: no file could be written either"
    )
