"""What a run says it paid is what a real server was asked for and said it took, whatever went wrong on the way."""

import asyncio
import json
import os
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import fsum
from pathlib import Path
from typing import Any

import pytest

from judgekit.errors import JudgekitError
from judgekit.jobs.missing import MissingScores
from judgekit.judges.judge import Judge
from judgekit.judges.limits.budget import Budget
from judgekit.judges.limits.rate_limit import requests_in_flight
from judgekit.judges.prompt import Prompt
from judgekit.judges.providers.price import Price
from judgekit.runs.results import Run
from judgekit.runs.rows import RunRecord, ScorerRecord
from judgekit.runs.runner import Task, score_run
from judgekit.runs.store import RunStore, now
from judgekit.score import JudgeCall
from judgekit.scorers.panel import Panel
from judgekit.scorers.prompted import PromptScorer
from judgekit.scorers.repeat import Repeat
from judgekit.scoring import Scorer
from judgekit.traces.message import AIMessage, HumanMessage, Usage
from judgekit.traces.sample import Sample

CASES = int(os.environ.get("JUDGEKIT_CASES", "10"))
SCALE = (("yes", 1.0), ("no", 0.0))
ASKED, OTHER = (
    Prompt(name, f"{name}?", ("conversation",), "", "You judge.", f"{name}?", scale=SCALE) for name in ("Good", "Kind")
)
PRICES = {"a": Price(2, 8), "b": Price(1, 3, 0.5), "c": Price(4, 4)}
GOOD = {"reason": "r", "evidence": [1], "verdict": "yes"}
QUOTA = {"error": {"code": "insufficient_quota", "message": "You exceeded your current quota"}}
UNHELD = {"error": {"message": "response_format json_schema is not supported"}}


@dataclass
class Provider:
    """Decides what becomes of each request, and remembers what it said that it took."""

    server: Any
    dice: random.Random
    faults: Sequence[str]
    likely: float
    silent: bool = False
    tokens: int = 0
    dollars: list[float] = field(default_factory=list)
    unknown: int = 0
    hanging: int = 0

    def __call__(self, body: Any) -> tuple:
        drawn = self.dice.choice(self.faults) if self.dice.random() < self.likely else "none"
        fault = "hang" if self.silent else drawn
        errors = {"overload": (500, {}), "rate limit": (429, {}), "quota": (429, QUOTA), "unheld": (400, UNHELD)}
        if fault in errors:
            status, error = errors[fault]
            return status, {"retry-after": "0"}, error
        if fault == "key":
            return 401, {}, {"error": {"message": "no such key"}}
        self.hanging += fault == "hang"
        if fault in ("reset", "close", "hang", "drip"):
            self.unknown += 1
            return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 900\r\n\r\n{", fault
        names = re.findall("^# Question (q[0-9]+)$", body["messages"][1]["content"], re.MULTILINE)
        good = {name: GOOD for name in names if fault != "part" or self.dice.random() < 0.5} if names else GOOD
        content = {"invalid": "{}", "nothing": ""}.get(fault, json.dumps(good))
        choice: dict[str, Any] = {"message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
        if fault == "refusal":
            choice["message"]["refusal"] = "I will not."
        elif fault in ("length", "content_filter"):
            choice["finish_reason"] = fault
        return 200, {}, {"model": "m", "choices": [choice], "usage": self._usage(body["model"], fault)}

    def _usage(self, model: str, fault: str) -> Any:
        if fault == "no usage":
            self.unknown += 1
            return None
        used, made = self.dice.randrange(1, 900), self.dice.randrange(1, 90)
        cached = self.dice.randrange(used)
        self.tokens += used + made
        cost = PRICES[model].of(Usage(input_tokens=used, output_tokens=made, cached_tokens=cached))
        assert cost is not None
        self.dollars.append(cost)
        details = {"cached_tokens": cached}
        return {"prompt_tokens": used, "completion_tokens": made, "prompt_tokens_details": details}


FAULTS = [
    *("overload", "rate limit", "invalid", "nothing", "refusal", "length", "content_filter", "unheld"),
    *("quota", "key", "reset", "close", "no usage", "hang"),
]
PARTS = ["part", *FAULTS]
STOPS = ["none", "none", "budget", "no more", "broken", "canceled"]


def scorers(dice: random.Random, url: str, budget: Budget, timeout: float, *, together: bool) -> list[Scorer]:
    """One to three scorers: alone, in repeats, on a panel, or in repeats on a panel; and up to five that ask together."""
    params = dice.choice([{}, {"max_tokens": 50}])

    def judge(model: str, **settings: Any) -> Judge:
        known = {"base_url": url, "price": PRICES[model], "params": params, "budget": budget, "together": together}
        return Judge(f"openai/{model}", timeout=timeout, attempts=2, **known, **settings)

    last = judge("c")
    others = judge("a", fallback=dice.choice([(), (last,)])), judge("b", cache_mode=dice.choice(["off", "read_write"]))
    alone = [PromptScorer(ASKED, one, name=f"alone_{one.model[-1]}") for one in (*others, last)]
    drawn = Repeat(alone[0], repeats=dice.choice([3, "auto"]), name="drawn")
    panel = Panel(alone, name="panel", quorum=dice.choice([None, 1]))
    joint = [
        PromptScorer(prompt, alone[number].judge, name=f"{prompt.name} {number}")
        for prompt in (ASKED, OTHER)
        for number in range(3)
    ]
    return [
        *dice.sample(
            [*alone, drawn, panel, Panel([drawn, *alone[1:]], name="both", escalate=True)], dice.randrange(1, 4)
        ),
        *(dice.sample(joint, dice.randrange(6)) if together else ()),
    ]


def until(stop: str, tasks: Iterable[Task], most: int) -> Iterator[Task]:
    """The tasks, of which there may suddenly be no more, or an error in their place."""
    for number, task in enumerate(tasks):
        if number == most and stop == "no more":
            return
        if number == most and stop == "broken":
            raise OSError("the disk is gone")
        yield task


async def silence(provider: Provider, running: "asyncio.Task[None]", after: int) -> None:
    """Waits until the provider, silent after so many requests, has all that are under way, and for a while no more."""
    provider.hanging = looks = 0
    while looks < 20 and not running.done():
        provider.silent = provider.silent or len(provider.server.requests) >= after
        has_all = requests_in_flight() == provider.hanging and (provider.silent or provider.hanging)
        looks = looks + 1 if has_all else 0
        await asyncio.sleep(0.001)


async def session(
    store: RunStore, record: RunRecord, made: Sequence[Scorer], work: Iterator[Task], stop: str, provider: Provider
) -> None:
    """Scores until it is done or stopped."""
    running = asyncio.create_task(score_run(store, record, work, made, concurrency=provider.dice.randrange(1, 5)))
    if stop == "canceled":
        await silence(provider, running, len(provider.server.requests) + provider.dice.randrange(8))
        for _ in range(provider.dice.randrange(1, 4)):
            running.cancel()
            await asyncio.sleep(0)
    await asyncio.wait([running])
    provider.silent = False
    if not running.cancelled() and (error := running.exception()) is not None:
        assert isinstance(error, JudgekitError | OSError), error


def calls(store: RunStore, record: RunRecord) -> list[JudgeCall]:
    kept = (row.score.calls for row in store.rows(record.number))
    return [call for some in chain(kept, (some for _, some in store.unscored_calls(record.number))) for call in some]


@pytest.mark.usefixtures("no_waits")
@pytest.mark.parametrize("together", [False, True], ids=["alone", "together"])
@pytest.mark.parametrize("seed", range(CASES))
def test_a_run_paid_what_its_judges_server_was_asked_for(server, seed, together):
    dice = random.Random(seed)  # noqa: S311 - a repeat, and no secret
    faults = PARTS if together else FAULTS
    provider = Provider(server, dice, dice.sample(faults, dice.randrange(1, 6)), dice.choice([0, 0.1, 0.4]))
    server.script = [provider]
    samples = [
        Sample.of([HumanMessage(f"Hi {number % dice.randrange(2, 9)}"), AIMessage("Hello")], id=str(number))
        for number in range(dice.randrange(1, 9))
    ]
    store = RunStore(dice.choice([None, Path("runs.sqlite")]))
    shape = random.Random(seed).getrandbits(32)  # noqa: S311
    record = store.begin(RunRecord(started_at=now(), scorers=[]))
    before = left = 0
    for _ in range(dice.randrange(1, 4)):
        stop = dice.choice(STOPS)
        budget = Budget(requests=dice.randrange(8)) if stop == "budget" else Budget()
        timeout = 10 if stop == "canceled" else 1
        made = scorers(random.Random(shape), server.url, budget, timeout, together=together)  # noqa: S311
        record = store.change(record.model_copy(update={"scorers": tuple(map(ScorerRecord.of, made))}))
        missing = MissingScores(store, record.number, dict(enumerate(made)), dice.choice([(), ("failed",)]))
        numbered = [(number, one) for number, one in enumerate(samples) if missing.has_any(number)]
        todo = (Task(number, one, missing.of(number)) for number, one in numbered)
        work = until(stop, todo, dice.randrange(4))
        asyncio.run(session(store, record, made, work, stop, provider))
        summary = Run(store, record).summary
        requests = round(sum(line.requests for line in summary), 6)
        # What is canceled, by an error that ends the run too, may not have left yet; it counts all the same.
        canceled = round(sum(call.count for call in calls(store, record) if call.error == "CancelledError"), 6)
        left += canceled - before
        before = canceled
        assert len(server.requests) <= requests <= len(server.requests) + left
        unknown = any(line.tokens is None for line in summary)
        assert unknown == any(line.cost_usd is None for line in summary) == bool(provider.unknown or left)
        if not unknown:
            assert sum(line.tokens or 0 for line in summary) == provider.tokens
            assert fsum(line.cost_usd or 0 for line in summary) == pytest.approx(fsum(provider.dollars))
