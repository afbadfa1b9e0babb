"""Processes that share a real Redis, are killed, and lose it: each request is paid for once, and no limit is passed."""

import asyncio
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections import Counter
from functools import partial
from itertools import count, cycle
from pathlib import Path

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from judgekit.errors import StoreError
from judgekit.judges.cache.redis_replies import RedisReplies
from judgekit.judges.redis.address import RedisAddress
from judgekit.judges.redis.server import RedisServer, ServerReport, _warn_once
from judgekit.judges.request import Reply
from judgekit.traces.message import AIMessage, HumanMessage
from judgekit.traces.sample import Sample

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(shutil.which("redis-server") is None, reason="needs redis-server"),
]

SLOTS = 16
"""Requests at once of a process."""
BURST = 0.25

WORKER = '''
import asyncio, json, os, sys
from judgekit.errors import BudgetError
from judgekit.judges.cache import cache, redis_replies
from judgekit.judges.limits import budget_client as budget, redis_rates, redis_spending
from judgekit.judges.redis import server as redis_server
from judgekit.judges.limits.budget_client import BudgetClient, max_amount
from judgekit.judges.cache.cache import Cache
from judgekit.judges.request import ChatMessage, Reply, Request
from judgekit.judges.cache.store import ReplyStore
from judgekit.judges.limits.rate_limit import Account, Limits, RateLimit
from judgekit.judges.redis.address import RedisAddress
from judgekit.judges.limits.budget import Budget
from judgekit.score import JudgeCall, record_calls
from judgekit.traces.message import Usage

what, url, port, lease, first, number, out = sys.argv[1:]
cache.CLAIM_LEASE_SECONDS = redis_replies.CLAIM_LEASE_SECONDS = float(lease)
redis_spending.RESERVATION_LEASE_SECONDS = budget.RESERVATION_LEASE_SECONDS = 1.0
connected = lambda: redis_server.RedisServer(RedisAddress(url))


def question(index):
    return Request(
        provider="a", base_url="", model="b", params={"max_tokens": 200}, messages=(ChatMessage("user", str(index)),),
        schema_name="s", schema={}, prompt="p@1", accept=lambda _: None,
    )


class Lines:
    """Asks the provider, one line a request."""

    async def open(self):
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", int(port))
        self.waiting = {}
        self.reading = asyncio.create_task(self.read())

    async def read(self):
        while line := await self.reader.readline():
            number, said = line.decode().split(" ", 1)
            self.waiting.pop(number).set_result(said.strip())

    async def complete(self, request, /):
        index = request.messages[0].content
        done = self.waiting[index] = asyncio.get_running_loop().create_future()
        self.writer.write(f"{index} {max_amount(request, None).tokens} {os.getpid()}\\n".encode())
        tokens, said = (await done).split(" ", 1)
        usage = Usage(input_tokens=0, output_tokens=int(tokens))
        record_calls(JudgeCall(judge="a/b", prompt="p@1", usage=usage))
        return Reply(text=said, usage=usage)

    async def aclose(self):
        self.writer.close()
        await self.reading


async def main():
    inner = Lines()
    await inner.open()
    if what == "budget":
        spending = lambda: redis_spending.RedisSpending(connected())
        client = BudgetClient(inner, Budget(tokens=400_000, name="team"), None, "a/b", spending, None)
    elif what == "rates":
        server = connected()
        rates = redis_rates.RedisRates(server, ["account"])
        account, asked, slots = Account(rates), server.run, []
        account.add_limits(Limits(32, 12_000))

        def run(command):
            found = asked(command)
            slots.append(sum(found))
            return found

        server.run = run
        client = RateLimit(inner, account)
    else:
        client = Cache(inner, ReplyStore(redis_replies.RedisReplies(connected()), 32), "read_write")
    gate, found = asyncio.Semaphore(16), {}

    async def one(index):
        async with gate:
            found[index] = (await client.complete(question(index))).text

    end = ""
    try:
        async with asyncio.TaskGroup() as group:
            for index in range(int(first), int(first) + int(number)):
                group.create_task(one(index))
    except* BudgetError as errors:
        end = str(errors.exceptions[0])
    await (rates if what == "rates" else client).aclose()
    await inner.aclose()
    with open(out, "w") as file:
        json.dump({"found": found, "end": end, "slots": slots if what == "rates" else []}, file)


asyncio.run(main())
'''


class Provider:
    """Answers lines, counts them, and charges for each as much as was reserved, or less."""

    def __init__(self) -> None:
        self.delay = 0.02
        self.sent: Counter[str] = Counter()
        self.under_way: Counter[int] = Counter()
        """Requests without an answer, by process."""
        self.paid = 0
        self._random = random.Random(3)  # noqa: S311 - no secret
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._server = self._run(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = self._server.sockets[0].getsockname()[1]

    @property
    def total(self) -> int:
        return self.sent.total()

    def _run(self, work):
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _serve(self, reader, writer):
        try:
            while line := await reader.readline():
                index, reserved, process = line.decode().split()
                self.sent[index] += 1
                self.under_way[int(process)] += 1
                tokens = self._random.randint(int(reserved) // 3, int(reserved))
                self.paid += tokens
                text = f"{index} {tokens} answer {self.total} to {index}\n".encode()
                self._loop.call_later(self.delay, self._answer, writer, text, int(process))
        except ConnectionError:  # whoever asked was killed
            pass
        finally:
            writer.close()

    def _answer(self, writer, text, process):
        self.under_way[process] -= 1
        if not writer.is_closing():
            writer.write(text)

    def stop(self):
        async def end():
            self._server.close()
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()
            await asyncio.sleep(0.01)

        self._run(end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@pytest.fixture
def provider():
    running = Provider()
    yield running
    running.stop()


class RedisProcess:
    """A server on a free port of loopback, with a folder of its own, that can be killed and started again."""

    def __init__(self, folder, *options):
        self.port = 65_535
        while self.port > 55_535:  # a server of a cluster also listens 10,000 higher
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                self.port = free.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.address = RedisAddress(self.url)
        self.client = redis.Redis(port=self.port, retry=Retry(NoBackoff(), 0))
        own = ("--port", self.port, "--bind", "127.0.0.1", "--dir", folder, "--save", "")
        self._words = [shutil.which("redis-server"), *options, *map(str, own)]

    def start(self):
        self._process = subprocess.Popen(self._words, stdout=subprocess.DEVNULL)  # noqa: S603 - the server
        until(self._is_up)

    def _is_up(self):
        try:
            return self.client.ping()
        except redis.AuthenticationError:
            return True
        except redis.ConnectionError:
            return False

    def kill(self):
        self._process.kill()
        self._process.wait()
        self.client.connection_pool.disconnect()


@pytest.fixture
def starting_redis(tmp_path):
    """Starts servers with options."""
    running = []

    def start(*options):
        server = RedisProcess(tmp_path, *(options or ("--appendonly", "yes")))
        running.append(server)
        server.start()
        return server

    yield start
    for server in running:
        server.kill()
        server.client.close()


@pytest.fixture
def shared(starting_redis):
    return starting_redis()


@pytest.fixture
def working(shared, provider, forked):
    """Starts processes that ask so many questions; the last of their words is the file of what they found."""
    outputs = (f"{number}.json" for number in count())
    Path("work.py").write_text(WORKER)

    def start(what="replies", number=300, lease=10.0, first=0):
        return forked("python", "work.py", what, shared.url, provider.port, lease, first, number, next(outputs))

    return start


def found_by(process):
    """What a process found, once it is done."""
    assert process.wait(timeout=50) == 0, process.communicate()
    return json.loads(Path(process.args[-1]).read_text())


def stopped_at_work(provider, running):
    """Stops a process that has requests under way, whose answers it will not read; those that only wait go on."""
    for process in cycle(running):
        os.kill(process.pid, signal.SIGSTOP)
        if provider.under_way[process.pid]:
            break
        os.kill(process.pid, signal.SIGCONT)
    return process


def until(it_is_so):
    """Waits for something that another process does."""
    began = time.monotonic()
    while not it_is_so():
        assert time.monotonic() - began < 30
        time.sleep(0.002)


# Replies


def test_processes_send_each_of_300_requests_once(provider, working):
    ends = [found_by(process) for process in [working() for _ in range(3)]]
    assert provider.total == len(provider.sent) == 300
    assert len(ends[0]["found"]) == 300
    assert all(end["found"] == ends[0]["found"] for end in ends)


def test_killed_processes_cost_what_they_had_under_way(provider, working):
    provider.delay = 0.05
    running = [working(lease=1) for _ in range(3)]
    for kill in range(2):
        until(lambda: provider.total > 100 * (kill + 1))  # noqa: B023 - called at once
        killed = stopped_at_work(provider, running)
        killed.kill()
        killed.wait()
        running = [*(process for process in running if process is not killed), working(lease=1)]
    ends = [found_by(process) for process in running]
    assert len(provider.sent) == 300
    assert 300 < provider.total <= 300 + 2 * SLOTS
    assert all(end["found"] == ends[0]["found"] for end in ends)


def test_while_redis_restarts_processes_wait_and_pay_nothing_twice(provider, working, shared):
    running = [working(number=600) for _ in range(2)]
    until(lambda: provider.total > 200)
    shared.kill()
    time.sleep(1)
    assert provider.total < 600
    shared.start()
    ends = [found_by(process) for process in running]
    assert provider.total == 600
    assert ends[0]["found"] == ends[1]["found"]


# Limits


def test_no_window_has_more_requests_than_the_limit_and_the_burst(provider, working):
    ends = [found_by(process) for process in [working("rates", 60) for _ in range(3)]]
    slots = sorted(slot / 1e6 for end in ends for slot in end["slots"])
    assert len(slots) == provider.total == 180
    for seconds in (0.1, 0.5, 1.0):
        most = max(sum(start <= slot < start + seconds for slot in slots) for start in slots)
        assert most <= 200 * (seconds + BURST) + 1
    assert slots[-1] - slots[0] < 10


# What the user sees


COMMAND = """
from judgekit.cli import main
from judgekit.judges.cache import cache, redis_replies
from judgekit.judges.redis import server as redis_server

cache.CLAIM_LEASE_SECONDS = redis_replies.CLAIM_LEASE_SECONDS = redis_server.PATIENCE_SECONDS = 1.0
main()
"""


@pytest.fixture
def judgekit(server, shared, goal, tmp_path, forked, monkeypatch):
    """Runs a command in a process of its own, with a judge that is the server and whose cache is Redis."""
    good = server.says({"goals": [goal | {"evidence": [1]}]})

    async def slowly(_body):
        await asyncio.sleep(0.02)
        return good

    server.script = [slowly]
    with (tmp_path / "samples.jsonl").open("w") as file:
        for index in range(100):
            said = [HumanMessage(f"Book table {index}."), AIMessage("It is booked.")]
            file.write(Sample.of(said, id=f"{index}").model_dump_json() + "\n")
    (tmp_path / "judgekit.toml").write_text(
        f'[judges.default]\nmodel = "openai/x"\nbase_url = "{server.url}"\nconcurrency = {SLOTS}\n'
        f'cache = "{shared.url}"\nbudget = {{requests = 10_000}}\n'
    )

    Path("command.py").write_text(COMMAND)
    monkeypatch.setenv("COLUMNS", "300")
    return partial(forked, "python", "command.py")


@pytest.mark.parametrize("has_data", [True, False], ids=["with its data", "empty"])
def test_a_run_that_loses_redis_for_good_stops_and_is_resumed_and_pays_twice_what_could_not_be_stored(
    server, shared, judgekit, tmp_path, has_data
):
    run = judgekit("run", "samples.jsonl", "--scorer", "agent_goal_accuracy_without_reference")
    until(lambda: len(server.requests) > 30 or run.poll() is not None)
    shared.kill()
    out = "".join(run.communicate())
    assert run.returncode == 2, out
    assert re.search(rf"{re.escape(shared.url)}: Redis is away( for \d+ s)?: Error 111 connecting to ", out), out
    assert "start it; judgekit resume continues from here" in out
    assert "saved as run 1" in out
    assert "Traceback" not in out
    lost = re.search(r"could not store the replies to (\d+) paid requests?, which will be sent again", out)
    assert lost
    assert 0 < int(lost[1]) <= SLOTS
    if not has_data:
        shutil.rmtree(tmp_path / "appendonlydir", ignore_errors=True)
    shared.start()
    resumed = judgekit("resume")
    out = "".join(resumed.communicate())
    assert resumed.returncode == 0, out
    assert "100 of 100" in out
    assert len(server.requests) <= 100 + SLOTS


def test_a_full_redis_is_an_error_and_keeps_what_it_has(starting_redis, question):
    full = starting_redis("--maxmemory", "1500000", "--maxmemory-policy", "noeviction")
    replies = RedisReplies(RedisServer(full.address))

    def fill():
        for repeat in range(200):
            replies.put(question(repeat=repeat), Reply(text=random.Random(repeat).randbytes(8_000).hex()))  # noqa: S311

    with pytest.raises(StoreError) as info:
        fill()
    assert replies.get(question().key).text
    replies.close()
    assert str(info.value) == (
        f"{full.url}: the memory of Redis is full (maxmemory): raise it, or delete old replies with judgekit cache prune; "
        "then judgekit resume continues. The replies so far are saved"
    )


def test_a_server_of_a_cluster_is_an_error_that_says_what_to_use(starting_redis):
    server = RedisServer(starting_redis("--cluster-enabled", "yes").address)
    with pytest.raises(StoreError) as info:
        server.check()
    server.close()
    assert str(info.value) == (
        f"{server.address}: is a part of a Redis Cluster, which is not supported: one request's keys are on several of "
        "its servers; use a server that runs without cluster-enabled"
    )


def test_a_sentinel_is_an_error_that_says_what_to_use(starting_redis, tmp_path):
    config = tmp_path / "sentinel.conf"
    config.touch()
    server = RedisServer(starting_redis(str(config), "--sentinel").address)
    with pytest.raises(
        StoreError, match=f"{server.address}: is a Sentinel, .*: use the address of the server that it wa"
    ):
        server.check()
    server.close()


@pytest.mark.parametrize(
    ("options", "report", "found"),
    [
        (
            ("--maxmemory", "50mb", "--maxmemory-policy", "volatile-lru", "--appendonly", "yes"),
            ("52428800", "volatile-lru", "appendonly yes"),
            ["maxmemory-policy is volatile-lru: once its memory is full, it drops replies, claims, limits or budgets"],
        ),
        (
            ("--appendonly", "no"),
            ("0", "noeviction", "off"),
            ["it stores nothing on disk: a restart loses replies and what budgets have spent; set appendonly yes"],
        ),
        (
            ("--rename-command", "CONFIG", ""),
            ("unknown", "unknown", "unknown"),
            [
                "it does not tell its settings (CONFIG is forbidden): make sure of maxmemory-policy noeviction and append"
            ],
        ),
        (("--appendonly", "yes", "--maxmemory", "50mb"), ("52428800", "noeviction", "appendonly yes"), []),
    ],
    ids=["evicts", "forgets", "unknown", "good"],
)
def test_settings_with_which_redis_may_lose_something_are_warned_of(starting_redis, caplog, options, report, found):
    _warn_once.cache_clear()
    server = RedisServer(starting_redis(*options).address)
    about = server.check()
    server.close()
    assert about == ServerReport(about.version, *report)
    assert re.fullmatch(r"(Redis|Valkey) \d.*", about.version)
    assert len(caplog.messages) == len(found)
    assert all(f"{server.address}: {text}" in said for text, said in zip(found, caplog.messages, strict=True))
