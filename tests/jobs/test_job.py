"""Scoring jobs: what is missing of a run, in shards."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from judgekit.jobs import missing
from judgekit.jobs.many import job as module
from judgekit.jobs.many.job import ScoringJob
from judgekit.jobs.many.workers import BlockClaims
from judgekit.jobs.options import RunOptions
from judgekit.runs.problems import ReadingProblems
from judgekit.runs.rows import RunRecord, ScorerRecord
from judgekit.runs.store import DEFAULT_RUNS_PATH, RunStore, now
from judgekit.scorers.tool_calls.f1 import ToolCallF1
from judgekit.traces.message import AIMessage, HumanMessage, ToolCall
from judgekit.traces.sample import Sample

NUMBER = 23


def sample(number: int) -> Sample:
    messages = [HumanMessage("Hi"), AIMessage(tool_calls=[ToolCall(f"tool_{number}")])]
    return Sample.of(messages, id=f"s{number}", reference_tool_calls=[ToolCall("tool_0")])


def lines(path: str, records: list) -> str:
    Path(path).parent.mkdir(exist_ok=True)
    Path(path).write_text("".join(one if isinstance(one, str) else f"{json.dumps(one)}\n" for one in records))
    return path


def own(path: str = "own.jsonl", first: int = 0, last: int = NUMBER) -> str:
    return lines(path, [f"{sample(number).model_dump_json()}\n" for number in range(first, last)])


def with_broken_ones() -> str:
    path = Path(own())
    records = path.read_text().splitlines(keepends=True)
    for number in (0, 4, 5, 22):
        records[number] = f'{{"id": "s{number}", "trace": {{"messages": {number}}}}}\n'
    return lines("broken.jsonl", records)


def folder() -> str:
    own("all/a.jsonl", 0, 7)
    own("all/b.jsonl", 7, 16)
    Path("all/c.json").write_text("{oops")
    own("all/d.jsonl", 16, NUMBER)
    return "all"


def references() -> str:
    return lines("refs.jsonl", [{"id": f"s{number}", "label": f"l{number}"} for number in (*range(9), 99)])


OPTIONS: dict[str, Callable[[], RunOptions]] = {
    "own": lambda: RunOptions(file=own()),
    "a folder with a broken file": lambda: RunOptions(file=folder()),
    "broken records": lambda: RunOptions(file=with_broken_ones()),
    "the first few": lambda: RunOptions(file=with_broken_ones(), limit=11),
    "a draw": lambda: RunOptions(file=with_broken_ones(), limit=15, sample=8, seed=5),
    "references": lambda: RunOptions(file=own(), references=references()),
}


@pytest.mark.parametrize("make", OPTIONS.values(), ids=OPTIONS)
def test_shares_are_disjoint_and_together_they_are_all(make, monkeypatch):
    """Each of several processes claims the block that nobody has claimed yet; here they take turns."""
    for holder in (missing, module):
        monkeypatch.setattr(holder, "BLOCK", 3)
    options, scorer = make(), ToolCallF1()
    store = RunStore(DEFAULT_RUNS_PATH)
    told = options.model_dump(mode="json", by_alias=True)
    record = store.begin(RunRecord(started_at=now(), scorers=[ScorerRecord.of(scorer)], options=told))
    job = ScoringJob(DEFAULT_RUNS_PATH, record, (0,))

    def tasks(problems: ReadingProblems, claim=lambda _: True) -> Iterator[tuple[int, Sample]]:
        return ((task.number, task.sample) for task in job.tasks(store, [scorer], problems, claim))

    problems = ReadingProblems()
    everything = list(tasks(problems))
    claims, shares = BlockClaims(), [([], ReadingProblems()) for _ in range(3)]
    waiting = [(tasks(found, claim=claims.claim), done) for done, found in shares]
    while waiting:
        share, done = waiting.pop(0)
        if (one := next(share, None)) is not None:
            done.append(one)
            waiting.append((share, done))
    assert sorted((one for done, _ in shares for one in done), key=lambda one: one[0]) == everything
    blocks = [{number // 3 for number, _ in done} for done, _ in shares]
    assert all(blocks)
    assert sum(map(len, blocks)) == len({number // 3 for number, _ in everything})
    assert {str(one) for _, found in shares for one in found} == {str(one) for one in problems}
    assert len(everything) > 7
