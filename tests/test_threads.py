"""Work in threads, and scorers that would block the event loop."""

import asyncio
import os
import random
import string
import subprocess
import sys
import threading
import time
from contextvars import ContextVar

import pytest
from rapidfuzz.distance import Indel, JaroWinkler, LCSseq, Levenshtein
from rapidfuzz.fuzz import token_sort_ratio

from judgekit import ROUGE, TER, ArgMatch, Regex, Sample, Similarity, ToolCallF1, attempt, run, scorer
from judgekit.scorers.text.base import compare_without_gil
from judgekit.threads import _MOST, run_in_thread
from judgekit.traces.message import AIMessage, HumanMessage, ToolCall, ToolMessage

GREETING = Sample.of([HumanMessage("Hello."), AIMessage("Hello.")], id="greeting")


def longest_pause(work):
    """Run work in an event loop; return its result, and for how long at most the loop stood still and had the processor.

    The one tells of sleep on the loop, the other of work there, also where other programs keep the loop waiting.
    """

    def times():
        return time.monotonic(), time.thread_time()

    async def body():
        task, longest, last = asyncio.create_task(work()), (0.0, 0.0), times()
        while not task.done():
            await asyncio.sleep(0.005)
            longest = tuple(max(most, now - then) for most, now, then in zip(longest, times(), last, strict=True))
            last = times()
        return await task, *longest

    return asyncio.run(body())


def test_work_is_done_in_another_thread_in_the_callers_context():
    setting: ContextVar[str] = ContextVar("setting")

    async def ask():
        setting.set("mine")
        return await run_in_thread(lambda: (setting.get(), threading.get_ident()))

    found, thread = asyncio.run(ask())
    assert found == "mine"
    assert thread != threading.get_ident()


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3)], ids=lambda error: type(error).__name__)
def test_what_work_raises_is_raised_to_the_caller(error):
    def work():
        raise error

    with pytest.raises(type(error)) as info:
        asyncio.run(run_in_thread(work))
    assert info.value is error


def test_work_that_exhausts_an_iterator_is_an_error_and_no_hang():
    with pytest.raises(RuntimeError, match="StopIteration"):
        asyncio.run(asyncio.wait_for(run_in_thread(lambda: next(iter(()))), 5))


def test_no_more_threads_than_there_may_be_work_at_once():
    at_once, most = [0], [0]
    lock = threading.Lock()

    def work():
        with lock:
            at_once[0] += 1
            most[0] = max(most[0], at_once[0])
        time.sleep(0.01)
        with lock:
            at_once[0] -= 1

    async def ask():
        await asyncio.gather(*(run_in_thread(work) for _ in range(5 * _MOST)))

    asyncio.run(ask())
    assert 1 < most[0] <= _MOST


def test_the_result_of_a_canceled_caller_is_dropped_and_nobody_waits_for_it(caplog):
    over = threading.Event()

    async def ask():
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(run_in_thread(lambda: over.wait(10)), 0.05)
        return await run_in_thread(lambda: "next")

    began = time.monotonic()
    assert asyncio.run(ask()) == "next"
    assert time.monotonic() - began < 8  # and not ten seconds
    over.set()
    time.sleep(0.05)
    assert caplog.records == []


# Scorers


def test_a_sync_function_scores_in_a_thread_and_an_async_one_on_the_loop():
    threads = {}

    @scorer
    def sync(_):
        threads["sync"] = threading.get_ident()
        return 1.0

    @scorer
    async def on_loop(_):
        threads["async"] = threading.get_ident()
        return 1.0

    async def ask():
        await sync.ascore(GREETING)
        await on_loop.ascore(GREETING)
        return threading.get_ident()

    loop = asyncio.run(ask())
    assert threads["async"] == loop
    assert threads["sync"] != loop


def test_slow_sync_functions_run_beside_each_other():
    @scorer
    def slow(_):
        time.sleep(0.5)
        return 1.0

    began = time.monotonic()
    found = run([GREETING] * 4, [slow], concurrency=4)
    assert [row.score.value for row in found] == [1.0] * 4
    assert time.monotonic() - began < 1.9  # after each other they take 2 s


def words(number, seed):
    draw = random.Random(seed)  # noqa: S311 - no secret
    return " ".join("".join(draw.choices(string.ascii_lowercase, k=5)) for _ in range(number))


def calls(number, text):
    return [ToolCall("find", {"text": f"{place} {text}", "place": place % 7}, id=f"{place}") for place in range(number)]


def called(number):
    messages = [HumanMessage("Find.")]
    for call in calls(number, "made"):
        messages += [AIMessage("", tool_calls=[call]), ToolMessage("found", tool_call_id=call.id)]
    return Sample.of(messages, reference_tool_calls=calls(number, "wanted"), id="calls")


def texts(number):
    return Sample.of([HumanMessage("?"), AIMessage(words(number, 1))], reference=words(number, 2), id="texts")


def shuffled(number):
    said = words(number, 1).split()
    expected = " ".join(random.Random(2).sample(said, number))  # noqa: S311 - no secret
    return Sample.of([HumanMessage("?"), AIMessage(" ".join(said))], reference=expected, id="shuffled")


def slow_comparison(one, other):
    time.sleep(0.3)
    return float(one == other)


HEAVY = {
    "ter": (TER(), lambda: shuffled(40)),
    "rougeL": (ROUGE(), lambda: texts(45_000)),
    "similarity": (Similarity(), lambda: texts(22_000)),
    "token_sort": (Similarity("token_sort"), lambda: texts(25_000)),
    "regex": (Regex(r"(a|aa)+$"), lambda: Sample.of([HumanMessage("?"), AIMessage("a" * 50 + "b")], id="evil")),
    "calls": (ToolCallF1(args=ArgMatch(text=Similarity())), lambda: called(100)),
    "function of texts": (ToolCallF1(args=ArgMatch(text=slow_comparison)), lambda: called(1)),
    "function of arguments": (ToolCallF1(args=slow_comparison), lambda: called(1)),
}


@pytest.mark.parametrize("name", HEAVY)
def test_a_shipped_scorer_leaves_the_loop_alone_on_a_large_sample(name):
    heavy, sample = HEAVY[name][0], HEAVY[name][1]()
    began = time.monotonic()
    score, pause, busy = longest_pause(lambda: attempt(heavy, sample))
    taken = time.monotonic() - began
    assert score.error in (None, "TimeoutError")
    assert taken > 0.25, "it would not show"
    assert busy < 0.2
    assert pause < max(0.25, taken / 2)


@pytest.mark.parametrize("measure", [Levenshtein, Indel, JaroWinkler])
def test_long_texts_have_the_similarity_that_they_would_have_if_they_were_short(measure):
    one, other = words(1000, 1), words(1000, 2)
    assert len(one) + len(other) > 4000
    assert compare_without_gil(measure.normalized_similarity, one, other) == measure.normalized_similarity(one, other)


def test_long_sequences_have_the_numbers_that_they_would_have_if_they_were_short():
    one, other = list(words(1000, 1)), list(words(1000, 2))
    assert compare_without_gil(LCSseq.similarity, one, other) == LCSseq.similarity(one, other)
    one, other = words(1000, 3), words(1000, 4)
    assert compare_without_gil(token_sort_ratio, one, other) == token_sort_ratio(one, other)


INTERRUPTED = """
import os, signal, threading, time
from judgekit import AIMessage, HumanMessage, Sample, run, scorer

began = time.monotonic()

@scorer
def slow(sample):
    if sample.id == "0":
        return 1.0
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    time.sleep(30)

@scorer
def quick(sample):
    return 1.0

samples = [Sample.of([HumanMessage("?"), AIMessage("!")], id=str(number)) for number in range(2)]
found = run(samples, [quick, slow], concurrency=1)
print(len(list(found)), found.record.stop_reason if hasattr(found, "record") else "", flush=True)
"""


def test_ctrl_c_stops_a_run_while_a_sync_function_is_under_way_without_waiting_for_it():
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    began = time.monotonic()
    ended = subprocess.run(  # noqa: S603 - the script above
        [sys.executable, "-c", INTERRUPTED], env=environment, capture_output=True, text=True, timeout=25, check=False
    )
    assert time.monotonic() - began < 20
    assert (ended.returncode, ended.stdout.split()[0]) == (0, "3"), ended.stderr
