"""What a run paid: all that was sent for it, also where no score came of it."""

import asyncio
import json
from pathlib import Path

import pytest

from judgekit.analysis.gates import check_gates
from judgekit.errors import AuthenticationError, QuotaError
from judgekit.jobs.api import arun, run
from judgekit.judges.prompt import Prompt
from judgekit.judges.request import Reply
from judgekit.judges.scripted import ScriptedJudge
from judgekit.reports.export import report
from judgekit.runs.recorder import Recorder
from judgekit.runs.results import Run
from judgekit.runs.rows import Row, RunRecord, ScorerRecord
from judgekit.runs.store import RunStore, now
from judgekit.runs.summary_text import ScorerSummary
from judgekit.score import JudgeCall, Score, record_calls
from judgekit.scorers.panel import Panel
from judgekit.scorers.prompted import PromptScorer
from judgekit.scorers.repeat import Repeat
from judgekit.scoring import scorer
from judgekit.traces.message import AIMessage, HumanMessage, Usage
from judgekit.traces.sample import Sample

RUNS = Path("runs.sqlite")
ASKED = Prompt("good", "Good?", ("conversation",), "", "You judge.", "Good?", scale=(("yes", 1.0), ("no", 0.0)))
REPLY = Reply(
    text=json.dumps({"reason": "r", "evidence": [1], "verdict": "yes"}),
    model="m",
    usage=Usage(input_tokens=1_000, output_tokens=100),
    cost_usd=0.25,
)


def samples(number: int) -> list[Sample]:
    return [Sample.of([HumanMessage(f"Hi {index}"), AIMessage("Hello")], id=str(index)) for index in range(number)]


def asking(*lines: Reply | Exception, name: str = "good") -> PromptScorer:
    """A scorer whose judge says these lines, the last one again and again."""
    spoken = iter(lines)
    last = lines[-1]
    return PromptScorer(ASKED, ScriptedJudge(lambda _: next(spoken, last)), name=name)


def spent(run: Run) -> list[tuple[int, int | None, float | None]]:
    return [(line.requests, line.tokens, line.cost_usd) for line in run.summary]


@pytest.mark.parametrize("store", [None, RUNS])
def test_the_paid_calls_of_a_panel_stay_with_the_run_when_a_member_s_quota_is_spent(store):
    members = [asking(REPLY, name="a"), asking(REPLY, name="b"), asking(REPLY, QuotaError("no money"), name="c")]
    found = run(samples(2), [Panel(members)], store=store, concurrency=1)
    assert (found.stop_reason, len(found)) == ("no money", 1)
    assert [row.score.usd_paid for row in found] == [0.75]
    assert spent(found) == [(6, 5_500, 1.25)]
    assert found.summary["panel"].unscored_requests == 3
    assert "panel: 3 requests led to no stored score: stopped or repeated" in str(found)


def paid(number: int = 1, **changes: object) -> list[JudgeCall]:
    return [JudgeCall(judge="j", prompt="p", cost_usd=0.25, usage=REPLY.usage).model_copy(update=changes)] * number


@pytest.mark.parametrize("ends", [AuthenticationError, asyncio.CancelledError])
def test_what_ends_a_run_at_once_takes_no_cost_with_it(ends):
    """Two have paid when it ends, and pay once more while they are canceled."""

    @scorer
    async def judged(sample: Sample) -> float:
        if sample.id == "2":
            await asyncio.sleep(0.01)
            if ends is AuthenticationError:
                raise ends("no key")
            running[0].cancel()
            await asyncio.sleep(60)
        record_calls(*paid())
        try:
            await asyncio.sleep(60)
        finally:
            record_calls(*paid())
        return 1.0

    running: list[asyncio.Task[Run]] = []

    async def work() -> None:
        running.append(asyncio.create_task(arun(samples(3), [judged], store=RUNS)))
        await running[0]

    with pytest.raises(ends):
        asyncio.run(work())
    found = Run.stored(path=RUNS)
    assert (len(found), spent(found)) == (0, [(4, 4_400, 1.0)])
    assert found.stop_reason == ("no key" if ends is AuthenticationError else "interrupted")


def test_where_tokens_or_prices_of_a_lost_attempt_are_unknown_those_of_the_run_are():
    lines = {"usage": (3, None, 0.5), "cost_usd": (3, 2_200, None)}
    for name, expected in lines.items():
        scorer = asking(REPLY, REPLY.model_copy(update={name: None}), QuotaError("no money"))
        assert spent(run(samples(1), [Repeat(scorer, repeats=3)])) == [expected]


def test_a_file_says_what_a_score_under_way_took_before_it_is_there():
    """So that what is killed loses no more than the last tenth of a second."""
    store = RunStore(RUNS)
    begun = store.begin(RunRecord(started_at=now(), scorers=[ScorerRecord.of(asking(REPLY))]))
    calls: list[JudgeCall] = []
    recorder = Recorder(store, begun)
    [sample] = samples(1)
    recorder.add_sample(0, sample)
    recorder.add_ledger(0, "good", calls)
    for number in range(1, 4):
        recorder.flush()
        calls += paid()
        recorder.flush()
        found = Run.stored(path=RUNS)
        assert (spent(found), found.summary["good"].unscored_requests) == (
            [(number, 1_100 * number, 0.25 * number)],
            number,
        )
    recorder.add_row(Row.of(0, sample, Score.scored("good", 1, calls=calls)))
    recorder.flush()
    found = Run.stored(path=RUNS)
    assert (spent(found), found.summary["good"].unscored_requests) == ([(3, 3_300, 0.75)], 0)


def test_a_score_that_takes_another_s_place_leaves_the_run_what_that_one_cost():
    store = RunStore(RUNS)
    begun = store.begin(RunRecord(started_at=now(), scorers=[ScorerRecord.of(asking(REPLY))]))
    [sample] = samples(1)
    for number in range(1, 4):
        recorder = Recorder(store, begun)
        recorder.add_sample(0, sample)
        recorder.add_row(Row.of(0, sample, Score.failed("good", "busy", error="OverloadError", calls=paid(2))))
        recorder.flush()
        found = Run.stored(path=RUNS)
        assert spent(found) == [(2 * number, 2_200 * number, 0.5 * number)]
        assert [row.score.usd_paid for row in found] == [0.5]
        assert found.summary["good"].unscored_requests == 2 * (number - 1)


def test_who_answered_is_told_of_scores_that_are_kept():
    line = ScorerSummary("good")
    line.add_unscored(paid(3, model="m-1"))
    assert (line.requests, line.judges, list(line.notes())) == (
        3,
        {},
        ["3 requests led to no stored score: stopped or repeated"],
    )
    line.add(Row(index=0, sample_id="0", score=Score.scored("good", 1, calls=paid(model="m-2"))))
    assert (line.requests, line.answers.models, line.unscored_requests) == (4, {"j": {"m-2": 1}}, 3)


@pytest.fixture
def half_paid() -> Run:
    """A run of two samples, one of which has a score at $0.50, and one cost $0.25, has none, and met a quota."""
    return run(
        samples(2), [Repeat(asking(*[REPLY] * 3, QuotaError("no money")), repeats=2, name="twice")], concurrency=1
    )


def test_reports_and_gates_are_of_all_that_was_paid(half_paid):
    assert spent(half_paid) == [(4, 3_300, 0.75)]
    assert "4 judge requests, 0 from cache, 3,300 tokens, $0.7500" in str(half_paid)
    gates = check_gates(half_paid, ["cost_usd <= 0.5", "twice.cost_usd <= 0.75"])
    assert [gate.met for gate in gates.gates] == [False, True]
    report(half_paid, "summary.md", gates)
    assert "$0.7500" in Path("summary.md").read_text()
    assert [row.score.usd_paid for row in half_paid] == [0.5]


def test_a_run_is_forgotten_only_if_it_has_neither_scores_nor_paid_calls(half_paid):
    store = RunStore(RUNS)
    known = [ScorerRecord.of(asking(REPLY))]
    tried = {
        "nothing": [],
        "refused": [JudgeCall(judge="j", prompt="p", error="AuthenticationError")],
        "score": [],
        "paid": paid(),
        "canceled": [JudgeCall(judge="j", prompt="p", error="CancelledError")],
    }
    [sample] = samples(1)
    begun = {name: store.begin(RunRecord(started_at=now(), scorers=known)) for name in tried}
    for name, calls in tried.items():
        recorder = Recorder(store, begun[name])
        recorder.add_sample(0, sample)
        recorder.add_ledger(0, "good", calls)
        if name == "score":
            recorder.add_row(Row.of(0, sample, Score.scored("good", 1)))
        recorder.flush()
        store.discard(begun[name].number)
    kept = [begun[name].number for name in ("score", "paid", "canceled")]
    assert store.numbers() == kept
    with store.transaction() as db:
        assert db.execute(
            "SELECT count(*) FROM unscored_calls WHERE run = ?", (begun["refused"].number,)
        ).fetchone() == (0,)
    store.remove(kept)
    with store.transaction() as db:
        assert db.execute("SELECT count(*) FROM unscored_calls").fetchone() == (0,)
