"""Runs that go on in Python, and scorers that are added to them."""

import asyncio
import base64
import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

import judgekit
from judgekit import Run, Sample, Score, ToolCallF1, aadd_scorers, add_scorers, aresume, resume, run
from judgekit.behavior import MaxTokens
from judgekit.errors import BudgetError, ConfigError
from judgekit.judges.scripted import ScriptedJudge
from judgekit.runs.rows import SampleCount
from judgekit.runs.store import RunStore
from judgekit.scorers.goal import AgentGoalAccuracyWithoutReference
from judgekit.scoring import scorer
from judgekit.traces.message import AIMessage, HumanMessage, MediaPart, TextPart
from judgekit.traces.trace import Trace

STORE = Path("runs.sqlite")
NUMBER = 12


class Failing:
    """A scorer that runs out of money after so many scores."""

    def __init__(self, after: int, version: str = "1") -> None:
        self.left = after
        self.version = version

    def scorer(self):
        @scorer(name="paid", version=self.version)
        async def paid(sample: Sample) -> float:
            if not self.left:
                raise BudgetError("spent")
            self.left -= 1
            return 1.0

        return paid


def indexes(found: Run, name: str = "paid") -> list[int]:
    return [row.index for row in found.rows(scorer=name)]


def going_on(*given: object, **named: object) -> Run:
    return asyncio.run(aresume(*given, **named))


RESUMES = pytest.mark.parametrize("resumes", [resume, going_on], ids=["resume", "aresume"])


@pytest.fixture
def stopped(samples) -> Run:
    """A run of samples and scorers in Python that was stopped after five of twelve."""
    found = run(samples(NUMBER), [Failing(5).scorer(), ToolCallF1()], store=STORE, concurrency=1)
    assert (found.stop_reason, indexes(found)) == ("spent", [0, 1, 2, 3, 4])
    return found


@pytest.mark.parametrize(("resumes", "run"), [(resume, 1), (going_on, "last")], ids=["resume", "aresume"])
def test_a_run_of_samples_and_objects_goes_on_with_the_same(stopped, samples, resumes, run):
    found = resumes(run, data=samples(NUMBER), scorers=[ToolCallF1(), Failing(99).scorer()], store=STORE)
    whole = judgekit.run(samples(NUMBER), [Failing(99).scorer(), ToolCallF1()])
    assert (found.number, found.stop_reason, found.samples) == (1, "", SampleCount(NUMBER, "exactly"))
    assert list(found) == list(whole) == list(Run.stored(1, STORE))


def test_a_run_in_memory_goes_on_too(samples):
    found = run(samples(NUMBER), [Failing(5).scorer()], concurrency=1)
    assert indexes(resume(found, data=samples(NUMBER), scorers=[Failing(99).scorer()])) == list(range(NUMBER))


def test_where_all_samples_are_kept_none_need_to_be_given(samples):
    def broken_at(number: int):
        @scorer(name="paid", version="1")
        def paid(sample: Sample) -> float:
            if sample.id == f"s{number}":
                raise ValueError("no")
            return 1.0

        return paid

    found = run(samples(4), [broken_at(2)], store=STORE)
    assert found.summary["paid"].counts["failed"] == 1
    again = resume(found, scorers=[broken_at(-1)], retry_failed=True)
    assert (again.summary["paid"].counts["failed"], indexes(again)) == (0, [0, 1, 2, 3])


def changed(found: list[Sample], number: int) -> list[Sample]:
    """Conversations with unchanged ids and questions, and another answer of the agent."""
    other = Sample.of([judgekit.HumanMessage("Hi"), judgekit.AIMessage("No.")], id=found[number].id)
    return [*found[:number], other, *found[number + 1 :]]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda found: changed(found, 0), r"data\[0\] is not the sample that run 1 started with"),
        (lambda found: found[1:], r"data\[0\] is not the sample"),
        (lambda found: found[:2], "data ends before sample 2 of run 1: pass all samples that it started with"),
        (
            lambda _: None,
            r"run 1 scored samples that were passed in Python: pass the same .*resume\(run, data=samples\)",
        ),
    ],
)
def test_other_samples_are_refused(stopped, samples, change, told):
    before = list(stopped)
    with pytest.raises(ConfigError, match=told):
        resume(stopped, data=change(samples(NUMBER)), scorers=[Failing(99).scorer(), ToolCallF1()])
    assert list(Run.stored(1, STORE)) == before


@pytest.mark.parametrize(
    ("scorers", "told"),
    [
        ((), "run 1 cannot be resumed by itself: paid, tool_call_f1 was passed as an object in Python"),
        ((Failing(9).scorer(),), "run 1 cannot be resumed by itself: tool_call_f1 was passed as an object in Python"),
        ((Failing(9, "2").scorer(), ToolCallF1()), "run 1 cannot be resumed: paid has changed: .* was '1' and is '2'"),
        (
            (Failing(9).scorer(), ToolCallF1(args=judgekit.ArgMatch(text="casefold"))),
            "run 1 cannot be resumed: tool_call_f1 has changed",
        ),
        ((Failing(9).scorer(), ToolCallF1(), MaxTokens(5)), "scorer of run 1.*'max_tokens'"),
    ],
)
def test_other_scorers_are_refused(stopped, samples, scorers, told):
    with pytest.raises(ConfigError, match=told):
        resume(stopped, data=samples(NUMBER), scorers=scorers)
    assert Run.stored(1, STORE).record == stopped.record


def test_a_run_of_a_file_reads_it_by_itself(conversations, samples):
    path = conversations(NUMBER)
    stopped = run(path, [Failing(5).scorer(), "tool_call_f1"], store=STORE, concurrency=1)
    with pytest.raises(ConfigError, match=r"run 1 reads samples\.jsonl by itself: omit data"):
        resume(stopped, data=samples(NUMBER), scorers=[Failing(9).scorer()])
    found = resume("last", scorers=[Failing(9).scorer()], store=STORE)
    assert indexes(found) == indexes(found, "tool_call_f1") == list(range(NUMBER))


def test_a_run_that_was_interrupted_goes_on(samples):
    def reading() -> Iterator[Sample]:
        yield from samples(NUMBER)[:7]
        raise KeyboardInterrupt

    stopped = run(reading(), [ToolCallF1()], store=STORE, concurrency=1)
    assert (stopped.stop_reason, len(stopped)) == ("interrupted", 7)
    found = resume(stopped, data=iter(samples(NUMBER)), scorers=[ToolCallF1()])
    assert (found.stop_reason, indexes(found, "tool_call_f1")) == ("", list(range(NUMBER)))
    assert found.samples == SampleCount(NUMBER, "exactly")


@RESUMES
@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE scores SET value = 0.5 WHERE sample = 3",
        "UPDATE samples SET domain = 'other' WHERE number = 3",
        "DELETE FROM scores WHERE sample = 3",
    ],
)
def test_a_finished_run_stays_as_it_is_unless_a_score_is_damaged_or_missing(samples, resumes, damage):
    found = run(samples(NUMBER), [ToolCallF1()], store=STORE)
    rows = list(found)
    long_ago = found.record.model_copy(update={"ended_at": found.started_at - timedelta(days=1)})
    RunStore(STORE).change(long_ago)
    again = resumes(scorers=[ToolCallF1()], store=STORE)
    assert (again.record, list(again), Run.stored(1, STORE).record) == (long_ago, rows, long_ago)
    with closing(sqlite3.connect(STORE)) as db, db:
        db.execute(damage)
    made_again = resumes(scorers=[ToolCallF1()], store=STORE)
    assert (made_again.ended_at > found.started_at - timedelta(days=1), list(made_again)) == (True, rows)


def test_an_error_that_stops_it_again_is_raised_and_what_was_scored_stays(stopped, samples):
    def breaking() -> Iterator[Sample]:
        yield from samples(NUMBER)[:8]
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone") as caught:
        resume(stopped, data=breaking(), scorers=[Failing(99).scorer(), ToolCallF1()], concurrency=1)
    assert caught.value.__notes__ == ["saved as run 1 in runs.sqlite"]
    assert (Run.stored(1, STORE).stop_reason, indexes(Run.stored(1, STORE))) == ("the disk is gone", list(range(8)))


def test_what_names_no_run_says_so():
    for which in ("first", 1.5, None):
        with pytest.raises(ConfigError, match="expected a Run, its number, or 'last'"):
            resume(which, store=STORE)


# --- adding scorers


def adding(*given: object, **named: object) -> Run:
    return asyncio.run(aadd_scorers(*given, **named))


@pytest.mark.parametrize("adds", [add_scorers, adding], ids=["add_scorers", "aadd_scorers"])
@pytest.mark.parametrize("made", [lambda path, _: path, lambda _, samples: samples], ids=["file", "samples"])
def test_scorers_are_added_as_objects_and_by_name(conversations, samples, adds, made):
    data = made(conversations(4), samples(4))
    first = run(data, [ToolCallF1()], store=STORE)
    before = list(first)
    found = adds(first, [MaxTokens(5), "tool_call_accuracy:as=accuracy"])
    assert [one.name for one in found.scorers] == ["tool_call_f1", "max_tokens", "accuracy"]
    assert list(found.rows(scorer="tool_call_f1")) == before
    assert list(found) == list(run(data, [ToolCallF1(), MaxTokens(5), "tool_call_accuracy:as=accuracy"]))
    assert resume(found, scorers=[ToolCallF1(), MaxTokens(5)]).stop_reason == ""


def test_scorers_that_cannot_be_added_leave_the_run_as_it_was(samples):
    @scorer
    def late(sample: Sample) -> Score:
        raise ConfigError("late")

    first = run(samples(4), [ToolCallF1()], store=STORE)
    for scorers, told in (
        (["tool_call_f1"], "two scorers are called 'tool_call_f1'"),
        (["no_such"], "no_such"),
        ([late], "late"),
        ([], "no scorers: name some"),
        ("tool_call_accuracy", "pass names to run in a list"),
    ):
        with pytest.raises(ConfigError, match=told):
            add_scorers(first, scorers)
    assert Run.stored(1, STORE).record == first.record


PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAADwAAAAoCAIAAAAt2Q6oAAAASUlEQVR4nO3OQQ3AIAAAMUAI/qUgCw97HFnSKug8e4+/Wa8DX0hXpCvSFemKdEW6"
    "Il2RrkhXpCvSFemKdEW6Il2RrkhXpCvSlQtBOQFUzKPJpQAAAABJRU5ErkJggg=="
)


def test_a_run_keeps_hashes_of_images_and_wants_the_recordings_again_to_show_them():
    """A judge that sees no images can be added from what the run keeps, one that sees them cannot."""
    goals = {"goals": [{"goal": "g", "end_state": "e", "reason": "r", "evidence": [1], "verdict": "achieved"}]}
    judges = {takes: ScriptedJudge(lambda _: goals, images=takes) for takes in (False, True)}
    message = HumanMessage([TextPart("what is it?"), MediaPart(kind="image", data=PNG)])
    data = [Sample(id="a", trace=Trace(messages=[message, AIMessage("A flag.")]))]
    found = run(data, [ToolCallF1()], store=STORE)
    [(_, kept)] = found.conversations()
    assert kept.trace.messages[0].content[1].sha256 == hashlib.sha256(base64.b64decode(PNG)).hexdigest()
    assert not any(PNG.encode() in path.read_bytes() for path in Path().rglob("*.sqlite*"))
    scorers = {takes: AgentGoalAccuracyWithoutReference(judge, name=f"g{takes}") for takes, judge in judges.items()}
    add_scorers(found, [scorers[False]], store=STORE)
    assert len(judges[False].requests) == 1
    with pytest.raises(ConfigError, match="pass the same there"):
        add_scorers(found, [scorers[True]], store=STORE)
    add_scorers(found, [scorers[True]], data=data, store=STORE)
    assert len(judges[True].requests[0].images) == 1
    changed = message.model_copy(update={"content": (message.content[0], MediaPart(kind="image", data="AAAA"))})
    other = [Sample(id="a", trace=Trace(messages=[changed, AIMessage("A flag.")]))]
    with pytest.raises(ConfigError, match="is not the sample"):
        add_scorers(found, [AgentGoalAccuracyWithoutReference(judges[True], name="h")], data=other, store=STORE)
