"""Scoring jobs: what is missing of a run, in shards."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from judgekit.jobs.many.job import ScoringJob
from judgekit.jobs.options import RunOptions
from judgekit.runs.problems import ReadingProblems
from judgekit.runs.rows import RunRecord, ScorerRecord
from judgekit.runs.store import DEFAULT_RUNS_PATH, RunStore, now
from judgekit.scorers.tool_calls.f1 import ToolCallF1
from judgekit.shards import EVERYTHING, Shard
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
    "a shard": lambda: RunOptions(file=own(), shard="1/3"),
    "references": lambda: RunOptions(file=own(), references=references()),
}


@pytest.mark.parametrize("make", OPTIONS.values(), ids=OPTIONS)
def test_shards_are_disjoint_and_together_they_are_all(make):
    options, scorer = make(), ToolCallF1()
    store = RunStore(DEFAULT_RUNS_PATH)
    told = options.model_dump(mode="json", by_alias=True)
    record = store.begin(RunRecord(started_at=now(), scorers=[ScorerRecord.of(scorer)], options=told))
    job = ScoringJob(DEFAULT_RUNS_PATH, record, (0,))

    def tasks(problems: ReadingProblems, shard: Shard = EVERYTHING) -> list[tuple[int, Sample]]:
        return [(task.number, task.sample) for task in job.tasks(store, [scorer], problems, shard)]

    problems = ReadingProblems()
    everything = tasks(problems)
    shares = [(tasks(found := ReadingProblems(), Shard(index, 3)), found) for index in range(3)]
    assert sorted((one for done, _ in shares for one in done), key=lambda one: one[0]) == everything
    assert sum(bool(done) for done, _ in shares) > 1
    assert {str(one) for _, found in shares for one in found} == {str(one) for one in problems}
    assert len(everything) > 5
