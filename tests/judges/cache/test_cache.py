"""The outermost layer: what is answered is not asked again."""

import asyncio
import gc
import logging
import sqlite3
import threading
import time
from typing import Literal

import pytest
from pydantic import BaseModel

from judgekit.errors import (
    FilterError,
    JudgeError,
    OverloadError,
    RefusalError,
    ReplayError,
    ReplyError,
    StoreError,
    TruncatedError,
)
from judgekit.judges.answer import read_answer
from judgekit.judges.cache.cache import Cache, ReplayClient, explain_miss
from judgekit.judges.cache.cassettes import Cassette
from judgekit.judges.cache.replies import Claim, RecordedReply, ReplyDatabase
from judgekit.judges.cache.store import ReplyStore, recorded_digests
from judgekit.judges.request import Reply, TokenLogprob
from judgekit.judges.schema import strict_schema
from judgekit.score import JudgeCall, ledger, record_calls
from judgekit.traces.message import Usage

REPLY = Reply(text="fine", model="m", system_fingerprint="fp", usage=Usage(input_tokens=3), cost_usd=0.1)
REMEMBERED = JudgeCall(
    judge="openai/judge-1",
    prompt="goodness@12345678",
    model="m",
    system_fingerprint="fp",
    cached=True,
    usage=Usage(input_tokens=3),
    cost_usd=0.0,
)


def without_exchange(calls):
    return [call.model_copy(update={"exchange": None}) for call in calls]


@pytest.fixture
def kept(tmp_path):
    """The file of the cache, to look into."""
    replies = ReplyDatabase(tmp_path / "cache.sqlite")
    yield replies
    replies.close()


@pytest.fixture
def shared(tmp_path):
    """The same file as a store."""
    replies = ReplyStore(ReplyDatabase(tmp_path / "cache.sqlite"))
    yield replies
    asyncio.run(replies.aclose())


def unacceptable(_):
    raise ValueError("good: is missing")


def test_an_answered_question_is_not_asked_again_and_costs_nothing(stub, shared, question):
    asked = stub([REPLY])
    cache = Cache(asked, shared, "read_write")
    with ledger() as calls:
        assert asyncio.run(cache.complete(question())) == REPLY
        assert calls == []  # who asks writes down what it costs
        assert asyncio.run(cache.complete(question())) == REPLY
    assert without_exchange(calls) == [REMEMBERED]
    assert [call.exchange for call in calls] == [question().exchange("fine")]
    assert len(asked.requests) == 1


def test_refresh_asks_again_and_keeps_the_new_reply(stub, kept, shared, question):
    kept.put(question(), REPLY)
    asked = stub([Reply(text="second"), Reply(text="third")])
    assert [asyncio.run(Cache(asked, shared, "refresh").complete(question())).text for _ in range(2)] == [
        "second",
        "third",
    ]
    assert asyncio.run(Cache(asked, shared, "read_write").complete(question())).text == "third"
    assert len(asked.requests) == 2


@pytest.mark.parametrize(
    "error",
    [
        OverloadError("busy"),
        RefusalError("no"),
        FilterError("no"),
        TruncatedError("cut"),
        ReplyError("broken", text="{"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_failed_is_not_kept(stub, kept, shared, question, error):
    cache = Cache(stub([error, REPLY]), shared, "read_write")
    with pytest.raises(type(error)):
        asyncio.run(cache.complete(question()))
    assert kept.get(question().key) is None
    assert asyncio.run(cache.complete(question())) == REPLY


def test_a_kept_reply_that_no_longer_fits_is_an_error_with_its_text(stub, kept, shared, question):
    kept.put(question(), REPLY)
    asked = stub()
    with (
        ledger() as calls,
        pytest.raises(ReplyError, match=r"cached reply to this request .* good: is missing") as info,
    ):
        asyncio.run(Cache(asked, shared, "read_write").complete(question(accept=unacceptable)))
    assert info.value.text == "fine"
    assert asked.requests == calls == []


# Single flight


def gated(stub, *lines):
    """A stub that answers when its gate is opened."""
    return stub(list(lines) or [REPLY], gate=asyncio.Event())


async def started(cache, requests):
    """Asks all at once, each with a ledger of its own, and waits until what is to be sent has been sent."""

    async def ask(request):
        with ledger() as calls:
            try:
                return await cache.complete(request), calls
            except JudgeError as error:
                return error, calls

    tasks = [asyncio.create_task(ask(request)) for request in requests]
    await claimed(cache)
    return tasks


async def claimed(cache):
    """Wait until what was asked up to now is claimed and sent."""
    for _ in range(2):
        for _ in range(5):
            await asyncio.sleep(0)
        await asyncio.wrap_future(cache.replies._threads.submit(int))


@pytest.mark.parametrize("mode", ["read_write", "refresh"])
def test_equal_questions_at_once_are_one_request_that_is_paid_once(stub, shared, question, mode):
    asked = gated(stub)

    async def ask():
        tasks = await started(Cache(asked, shared, mode), [question() for _ in range(50)])
        asked.gate.set()
        return await asyncio.gather(*tasks)

    first, *others = asyncio.run(ask())
    assert len(asked.requests) == 1
    assert first == (REPLY, [])
    assert [(reply, without_exchange(calls)) for reply, calls in others] == [(REPLY, [REMEMBERED])] * 49


class Paying:
    """Answers when its gate is opened, as a provider that is paid, also for a request that is canceled."""

    def __init__(self, line: Reply | Exception = REPLY) -> None:
        self.gate = asyncio.Event()
        self.requests = 0
        self._line = line

    async def complete(self, request):
        self.requests += 1
        error: str | None = "CancelledError"
        try:
            await self.gate.wait()
            error = type(self._line).__name__ if isinstance(self._line, Exception) else None
        finally:
            record_calls(JudgeCall(judge=request.judge, prompt=request.prompt, cost_usd=0.25, error=error))
        if isinstance(self._line, Exception):
            raise self._line
        return self._line

    async def aclose(self) -> None:
        """Nothing is held open."""


def paid(calls):
    return [call.error for call in calls if not call.cached]


@pytest.mark.parametrize("mode", ["read_write", "refresh"])
@pytest.mark.parametrize("line", [REPLY, OverloadError("busy")], ids=["reply", "error"])
@pytest.mark.parametrize("canceled", [[0], [1], [0, 1], [0, 2], [1, 2]])
def test_a_shared_request_is_paid_once_by_the_first_that_stays(shared, question, canceled, line, mode):
    async def ask():
        asked = Paying(line)
        ledgers: list[list[JudgeCall]] = []

        async def one():
            with ledger() as calls:
                ledgers.append(calls)
                return await Cache.complete(cache, question())

        cache = Cache(asked, shared, mode)
        tasks = [asyncio.create_task(one()) for _ in range(3)]
        await claimed(cache)
        for place in canceled:
            tasks[place].cancel()
        await asyncio.sleep(0)
        assert [paid(calls) for calls in ledgers] == [[], [], []]
        asked.gate.set()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        assert asked.requests == 1
        return ends, ledgers

    ends, ledgers = asyncio.run(ask())
    staying = [place for place in range(3) if place not in canceled]
    assert [isinstance(end, asyncio.CancelledError) for end in ends] == [place in canceled for place in range(3)]
    assert [ends[place] for place in staying] == [line] * len(staying)
    error = None if line is REPLY else "OverloadError"
    assert [paid(calls) for calls in ledgers] == [[error] if place == staying[0] else [] for place in range(3)]
    again = sum(call.cached for calls in ledgers for call in calls)
    assert again == (len(staying) - 1 if line is REPLY else 0)


@pytest.mark.parametrize("times", [1, 3])
def test_a_request_whose_waiters_are_all_canceled_is_canceled_and_the_last_one_knows_its_cost(shared, question, times):
    async def ask():
        asked = Paying()
        cache = Cache(asked, shared, "read_write")
        with ledger() as calls:
            tasks = [asyncio.create_task(cache.complete(question())) for _ in range(3)]
            await claimed(cache)
            for _ in range(times):
                for task in tasks:
                    task.cancel()
                await asyncio.sleep(0)
            again = asyncio.create_task(cache.complete(question()))
            ends = await asyncio.gather(*tasks, return_exceptions=True)
            assert [type(end) for end in ends] == [asyncio.CancelledError] * 3
            assert paid(calls) == ["CancelledError"]
            asked.gate.set()
            assert await again == REPLY  # whoever asks after them asks anew
        assert (asked.requests, paid(calls)) == (2, ["CancelledError", None])

    asyncio.run(ask())
    gc.collect()  # an exception that nobody saw is reported when its task is forgotten


def test_waiters_that_are_canceled_as_the_reply_comes_pay_for_it_once(kept, shared, question):
    async def ask():
        asked = Paying()
        cache = Cache(asked, shared, "read_write")
        with ledger() as calls:
            tasks = [asyncio.create_task(cache.complete(question())) for _ in range(3)]
            await claimed(cache)
            under_way = cache._in_flight[question().key].task
            under_way.add_done_callback(lambda _: [task.cancel() for task in tasks])
            asked.gate.set()
            await asyncio.gather(*tasks, return_exceptions=True)
        return paid(calls)

    assert asyncio.run(ask()) == [None]
    assert kept.get(question().key) == REPLY


def test_a_waiter_that_checks_more_than_the_one_who_asked_does_not_get_what_it_would_refuse(stub, shared, question):
    asked = gated(stub)

    async def ask():
        tasks = await started(Cache(asked, shared, "read_write"), [question(), question(accept=unacceptable)])
        asked.gate.set()
        return await asyncio.gather(*tasks)

    (first, _), (second, calls) = asyncio.run(ask())
    assert first == REPLY
    assert isinstance(second, ReplyError)
    assert second.text == "fine"
    assert calls == []


# Others that use the same file


@pytest.fixture
def path(tmp_path):
    return tmp_path / "cache.sqlite"


@pytest.fixture
def two_caches(stub, path):
    """Two caches on one file, as two judges have them, over one client."""
    asked = gated(stub)
    caches = [Cache(asked, ReplyStore(ReplyDatabase(path)), "read_write") for _ in range(2)]
    yield asked, *caches
    for cache in caches:
        asyncio.run(cache.aclose())


def claims(path):
    database = sqlite3.connect(path)
    rows = database.execute("SELECT key, until FROM claims").fetchall()
    database.close()
    return dict(rows)


def test_what_another_is_asking_is_waited_for_and_costs_nothing(two_caches, question):
    asked, one, other = two_caches

    async def ask():
        tasks = [*await started(one, [question()]), *await started(other, [question()] * 3)]
        asked.gate.set()
        return await asyncio.gather(*tasks)

    first, *others = asyncio.run(ask())
    assert len(asked.requests) == 1
    assert first == (REPLY, [])
    assert [(reply, without_exchange(calls)) for reply, calls in others] == [(REPLY, [REMEMBERED])] * 3


@pytest.mark.parametrize("error", [OverloadError("busy"), RefusalError("no")], ids=lambda error: type(error).__name__)
def test_what_another_failed_to_get_is_asked_again_at_once(two_caches, question, path, error):
    asked, one, other = two_caches
    asked.lines = [error, REPLY]

    async def ask():
        tasks = [*await started(one, [question()]), *await started(other, [question()])]
        asked.gate.set()
        return await asyncio.wait_for(asyncio.gather(*tasks), timeout=5)  # a lease would take ten seconds

    (first, _), (second, calls) = asyncio.run(ask())
    assert type(first) is type(error)
    assert (second, calls) == (REPLY, [])
    assert len(asked.requests) == 2
    assert claims(path) == {}


def test_a_waiter_that_is_canceled_leaves_the_claim_of_another_alone(two_caches, question, path):
    _, one, other = two_caches

    async def ask():
        await started(one, [question()])
        [waiting] = await started(other, [question()])
        await asyncio.sleep(0.03)
        waiting.cancel()
        await asyncio.wait([waiting])
        await claimed(other)
        assert claims(path).keys() == {question().key}

    asyncio.run(ask())


def test_the_requests_of_one_who_was_killed_are_asked_when_the_lease_has_ended(stub, path, question, monkeypatch):
    monkeypatch.setattr("judgekit.judges.cache.replies.CLAIM_LEASE_SECONDS", 0.2)
    dead = ReplyDatabase(path)
    assert dead.claim(Claim(question().key, "dead")) is True
    [until] = claims(path).values()
    cache = Cache(stub([REPLY]), ReplyStore(ReplyDatabase(path)), "read_write")
    assert asyncio.run(cache.complete(question())) == REPLY
    assert time.time() > until
    dead.close()
    asyncio.run(cache.aclose())


def test_a_claim_is_renewed_for_as_long_as_the_request_takes(two_caches, question, path, monkeypatch):
    # so that it is renewed every hundredth of a second
    monkeypatch.setattr("judgekit.judges.cache.cache.CLAIM_LEASE_SECONDS", 0.03)
    asked, one, _ = two_caches

    async def ask():
        [task] = await started(one, [question()])
        [first] = claims(path).values()
        for times in range(1, 4):
            while claims(path)[question().key] < first + times * 0.02:  # noqa: ASYNC110 - it is waited for in a file
                await asyncio.sleep(0.01)
        asked.gate.set()
        await task

    asyncio.run(ask())


def test_a_loop_that_is_blocked_for_longer_than_a_lease_keeps_its_claims(stub, path, question, monkeypatch):
    for module in ("cache", "replies"):
        monkeypatch.setattr(f"judgekit.judges.cache.{module}.CLAIM_LEASE_SECONDS", 0.2)
    asked, late = stub([REPLY]), stub([Reply(text="late")])
    blocked = threading.Event()

    async def block():
        asked.gate = asyncio.Event()
        cache = Cache(asked, ReplyStore(ReplyDatabase(path)), "read_write")
        [task] = await started(cache, [question()])
        blocked.set()
        time.sleep(0.5)  # noqa: ASYNC251 - on purpose
        asked.gate.set()
        assert await task == (REPLY, [])
        await cache.aclose()

    async def ask():
        cache = Cache(late, ReplyStore(ReplyDatabase(path)), "read_write")
        assert await cache.complete(question()) == REPLY
        await cache.aclose()

    thread = threading.Thread(target=lambda: asyncio.run(block()))
    thread.start()
    assert blocked.wait(5)
    asyncio.run(ask())
    thread.join()
    assert (len(asked.requests), late.requests) == (1, [])


def test_a_holder_that_stalled_uses_the_reply_that_stands_and_pays_its_own(kept, shared, question):
    class Paid:
        async def complete(self, request):
            record_calls(JudgeCall(judge=request.judge, prompt=request.prompt, cost_usd=0.25))
            kept.put(request, REPLY)  # another process, after the lease has ended
            return Reply(text="too late")

    with ledger() as calls:
        assert asyncio.run(Cache(Paid(), shared, "read_write").complete(question())) == REPLY
    assert [call.cost_usd for call in calls] == [0.25]
    assert kept.get(question().key) == REPLY


def test_a_renewal_that_fails_is_nobodys_error(two_caches, question, monkeypatch, caplog):
    monkeypatch.setattr("judgekit.judges.cache.cache.CLAIM_LEASE_SECONDS", 0.03)
    asked, one, _ = two_caches
    tried = threading.Event()

    def renew(_):
        tried.set()
        raise StoreError("the disk is gone")

    monkeypatch.setattr(one.replies, "renew", renew)

    async def ask():
        [task] = await started(one, [question()])
        assert await asyncio.to_thread(tried.wait, 5)
        asked.gate.set()
        return await task

    assert asyncio.run(ask()) == (REPLY, [])
    assert caplog.records == []


def test_refresh_waits_for_nobody_and_claims_nothing(two_caches, question, path):
    asked, one, other = two_caches
    other.mode = "refresh"

    async def ask():
        tasks = [*await started(one, [question()]), *await started(other, [question()])]
        assert len(asked.requests) == 2
        assert len(claims(path)) == 1
        asked.gate.set()
        await asyncio.gather(*tasks)

    asyncio.run(ask())


def test_a_reply_that_cannot_be_kept_is_an_error_and_the_claim_is_given_back(stub, path, question):
    replies = ReplyDatabase(path)
    replies._db.execute("PRAGMA max_page_count = 12")
    cache = Cache(stub([Reply(text="x" * 100_000), REPLY]), ReplyStore(replies), "read_write")
    with pytest.raises(StoreError, match="disk is full"):
        asyncio.run(cache.complete(question()))
    assert claims(path) == {}
    assert asyncio.run(cache.complete(question())) == REPLY
    asyncio.run(cache.aclose())


def test_closing_ends_what_is_under_way_and_gives_its_claims_back(stub, path, question, caplog):
    asked = gated(stub)

    async def close():
        cache = Cache(asked, ReplyStore(ReplyDatabase(path)), "read_write")
        tasks = await started(cache, [question(repeat=repeat) for repeat in range(3)])
        assert len(claims(path)) == 3
        await cache.aclose()
        assert claims(path) == {}
        cache._renewal.join(5)
        assert not cache._renewal.is_alive()
        return await asyncio.gather(*tasks, return_exceptions=True)

    assert [type(end) for end in asyncio.run(close())] == [asyncio.CancelledError] * 3
    assert asked.under_way == 0
    assert [one for one in caplog.records if one.levelno >= logging.WARNING] == []


# Without the judge's words


class Opinion(BaseModel):
    reason: str
    verdict: Literal["good", "bad"]


def asks_for_opinion(question, check=lambda _: None):
    return question(schema=strict_schema(Opinion), accept=lambda text: check(read_answer(text, Opinion)))


SAID = Reply(
    text='{"reason": "Smith said so.", "verdict": "bad"}',
    model="m",
    usage=Usage(input_tokens=3),
    cost_usd=0.1,
    logprobs=(TokenLogprob(token="Smith", logprob=-0.1),),  # noqa: S106 - a part of a word
)


def test_without_text_the_verdict_alone_is_kept_and_whoever_asked_still_gets_it_all(stub, shared, question, path):
    cache = Cache(stub([SAID]), shared, "read_write", store_text=False)
    assert asyncio.run(cache.complete(asks_for_opinion(question))) == SAID
    remembered = asyncio.run(cache.complete(asks_for_opinion(question)))
    assert remembered == Reply(text='{"reason":"","verdict":"bad"}', model="m", usage=SAID.usage, cost_usd=0.1)
    assert len(cache.inner.requests) == 1
    for file in path.parent.iterdir():
        assert b"Smith" not in file.read_bytes()


def test_without_text_what_only_words_can_tell_is_asked_again(stub, shared, question, path):
    def check(answer):
        if not answer.reason:
            raise ValueError("reason: is missing")

    cache = Cache(stub([SAID]), shared, "read_write", store_text=False)
    for _ in range(2):
        assert asyncio.run(cache.complete(asks_for_opinion(question, check))) == SAID
    assert len(cache.inner.requests) == 2
    assert claims(path) == {}


# Replay


@pytest.fixture(params=["sqlite", "jsonl"])
def recorded(request, tmp_path, question):
    """One reply in a file of each kind."""
    path = tmp_path / f"replies.{request.param}"
    if request.param == "jsonl":
        about = RecordedReply(note="By hand.").model_dump_json(exclude_unset=True)
        line = RecordedReply(key=question().key, digests=question().digests, reply=REPLY).model_dump_json()
        path.write_text(f"{about}\n{line}\n")
        replies = Cassette(path)
    else:
        kept = ReplyDatabase(path)
        kept.put(question(), REPLY)
        kept.close()
        replies = ReplyStore(ReplyDatabase(path, read_only=True))
    yield replies
    asyncio.run(replies.aclose())


def test_replay_answers_from_what_is_kept_at_no_cost(recorded, question):
    with ledger() as calls:
        assert asyncio.run(ReplayClient(recorded).complete(question())) == REPLY
    assert without_exchange(calls) == [REMEMBERED]


@pytest.mark.parametrize(
    ("changes", "differs"),
    [
        ({"model": "judge-2"}, "model"),
        ({"params": {}}, "params"),
        ({"repeat": 3, "base_url": "?"}, "base_url, repeat"),
        ({"messages": ()}, "messages, messages[0] (system), messages[1] (user)"),
    ],
    ids=["model", "params", "two parts", "messages"],
)
def test_a_question_that_is_not_kept_is_an_error_that_names_what_differs(recorded, question, changes, differs):
    with ledger() as calls, pytest.raises(ReplayError) as info:
        asyncio.run(ReplayClient(recorded).complete(question(**changes)))
    assert str(info.value) == (
        "no reply is recorded for this request of goodness@12345678, and replay mode sends no requests; "
        f"the nearest recorded request differs in {differs}"
    )
    assert calls == []


def test_the_nearest_is_the_recorded_request_that_differs_in_the_fewest_parts(kept, shared, question):
    for far in ({"model": "x", "params": {}}, {"repeat": 1}, {"model": "y", "schema": {}, "base_url": "?"}):
        kept.put(question(**far), REPLY)
    with pytest.raises(ReplayError, match=r"differs in repeat$"):
        asyncio.run(ReplayClient(shared).complete(question()))


def test_a_request_of_the_same_prompt_is_nearer_than_one_of_another(kept, question):
    kept.put(question(prompt="badness@1"), REPLY)
    asked = question(model="other", params={}, repeat=1)
    kept.put(question(prompt="goodness@0", messages=()), REPLY)
    assert explain_miss(recorded_digests(kept.recorded()), asked) == (
        "the nearest recorded request differs in messages, messages[0] (system), messages[1] (user), model, params, repeat"
    )
    assert explain_miss(recorded_digests(kept.recorded()), question(prompt="third@1", model="other")) == (
        "the nearest recorded request differs in model"
    )


def test_a_request_whose_key_alone_was_changed_by_hand_is_said_to_differ_in_it(question, tmp_path):
    path = tmp_path / "replies.jsonl"
    path.write_text(RecordedReply(key="k", digests=question().digests, reply=REPLY).model_dump_json())
    assert explain_miss(asyncio.run(Cassette(path).digests()), question()) == (
        "the nearest recorded request differs in only its key"
    )


def test_a_reply_that_is_damaged_is_as_good_as_not_recorded(question, tmp_path):
    path = tmp_path / "cache.sqlite"
    replies = ReplyDatabase(path)
    replies.put(question(), REPLY)
    replies.close()
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("UPDATE replies SET reply = '{'")
    database.close()
    replay = ReplayClient(ReplyStore(ReplyDatabase(path, read_only=True)))
    with pytest.raises(ReplayError, match="nothing is recorded"):
        asyncio.run(replay.complete(question()))
    asyncio.run(replay.replies.aclose())


def test_when_the_store_fails_requests_under_way_are_waited_for_and_their_replies_put(path, stub, question):
    class Failing(ReplyStore):
        put_keys: set[str] = set()  # noqa: RUF012 - of this test

        async def put(self, request, reply, /, *, replace=False):
            self.put_keys.add(request.key)
            raise StoreError("the store is away")

    async def ask():
        gate = asyncio.Event()
        slow, fast = question(repeat=1), question(repeat=2)
        providers = {slow.key: stub(gate=gate), fast.key: stub()}

        class Provider:
            async def complete(self, request, /):
                return await providers[request.key].complete(request)

            async def aclose(self):
                pass

        cache = Cache(Provider(), Failing(ReplyDatabase(path)), "read_write")
        asking = [asyncio.create_task(cache.complete(one)) for one in (slow, fast)]
        await asyncio.sleep(0.1)
        assert not any(one.done() for one in asking)
        gate.set()
        for error in await asyncio.gather(*asking, return_exceptions=True):
            assert str(error) == "the store is away"
        assert Failing.put_keys == {slow.key, fast.key}
        await cache.aclose()

    asyncio.run(ask())
