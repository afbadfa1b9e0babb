"""Running scorers over samples."""

import asyncio
import json
import random
import signal
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.errors import (
    STOPS_JUDGE,
    AuthenticationError,
    BudgetError,
    ConfigError,
    ModelError,
    StoreError,
    TraceError,
)
from judgekit.jobs import session
from judgekit.jobs.api import arun, run
from judgekit.judges.prompt import Prompt
from judgekit.judges.prompt_file import load_prompt
from judgekit.runs.results import Run
from judgekit.runs.rows import Row
from judgekit.runs.runner import make_tasks, score_tasks
from judgekit.score import JudgeCall, Score, record_calls
from judgekit.scorers.tool_calls.f1 import ToolCallF1
from judgekit.scoring import scorer
from judgekit.traces.message import AIMessage, HumanMessage
from judgekit.traces.sample import Sample


def samples(number: int) -> list[Sample]:
    return [Sample(id=str(index)) for index in range(number)]


def keys(rows: Iterable[Row]) -> list[tuple[int, str, str]]:
    return [(row.index, row.sample_id, row.score.scorer) for row in rows]


def in_order(number: int, *names: str) -> list[tuple[int, str, str]]:
    return [(index, str(index), name) for index in range(number) for name in names]


@dataclass(frozen=True)
class Delayed:
    """Gives control away as many times as it is told for each sample."""

    steps: Callable[[Sample], int]
    name: str = "delayed"

    async def ascore(self, sample: Sample, /) -> Score:
        for _ in range(self.steps(sample)):
            await asyncio.sleep(0)
        return Score.scored(self.name, 1)


@scorer
async def fine(sample: Sample) -> float:
    return 1.0


@scorer
def broken(sample: Sample) -> float:
    raise ValueError(f"cannot score {sample.id}")


@given(st.lists(st.integers(0, 8), max_size=12), st.integers(1, 5))
def test_rows_stand_in_the_order_of_the_samples_whatever_takes_long(delays, concurrency):
    slow, quick = Delayed(lambda sample: delays[int(sample.id)], "slow"), Delayed(lambda sample: 0, "quick")
    found = run(samples(len(delays)), [slow, quick], concurrency=concurrency)
    assert keys(found) == in_order(len(delays), "slow", "quick")
    assert not found.stop_reason


def test_rows_are_handed_on_as_soon_as_they_are_there():
    rows: list[Row] = []
    later, latest = Delayed(lambda sample: 10 - int(sample.id)), Delayed(lambda sample: 100, "latest")
    asyncio.run(
        score_tasks(make_tasks(samples(10), [fine, later, latest]), [fine, later, latest], rows.append, concurrency=10)
    )
    assert keys(rows) == [*in_order(10, "fine"), *reversed(in_order(10, "delayed")), *reversed(in_order(10, "latest"))]


@pytest.mark.parametrize("concurrency", [1, 7])
def test_no_more_samples_are_scored_at_once_than_allowed_and_no_fewer(concurrency):
    at_once: set[str] = set()
    most = 0

    @scorer
    async def watched(sample: Sample) -> float:
        nonlocal most
        at_once.add(sample.id)
        most = max(most, len(at_once))
        for _ in range(3):
            await asyncio.sleep(0)
        at_once.remove(sample.id)
        return 1.0

    run(samples(20), [watched], concurrency=concurrency)
    assert most == concurrency


def test_the_scorers_of_one_sample_wait_for_one_another():
    """So that a provider can remember the conversation from one question to the next."""
    started: list[str] = []

    def asking(name: str):
        @scorer(name=name)
        async def ask(sample: Sample) -> float:
            started.append(name)
            await asyncio.sleep(0)
            started.append(f"{name} done")
            return 1.0

        return ask

    run(samples(1), [asking("a"), asking("b")])
    assert started == ["a", "a done", "b", "b done"]


@dataclass(frozen=True)
class Asking:
    """Asks a judge, and notes when."""

    name: str
    noted: list[str]
    prompts: tuple[Prompt, ...] = (load_prompt("tone"),)
    error: Exception | None = None

    async def ascore(self, sample: Sample, /) -> Score:
        self.noted.append(self.name)
        await asyncio.sleep(0)
        if self.error is not None:
            raise self.error
        return Score.scored(self.name, 1)


@pytest.mark.parametrize("first", ["judged", "counted"])
def test_scorers_that_ask_a_judge_and_others_do_not_wait_for_each_other(first):
    """The row of whoever is done is there while the other has yet to begin to end."""
    rows: list[Row] = []
    ended = {name: asyncio.Event() for name in ("judged", "counted")}

    @dataclass(frozen=True)
    class Waiting:
        name: str
        prompts: tuple[Prompt, ...] = ()

        async def ascore(self, sample: Sample, /) -> Score:
            await ended[self.name].wait()
            return Score.scored(self.name, 1)

    async def work() -> None:
        scorers = [Waiting("judged", ("a question",)), Waiting("counted")]
        task = asyncio.create_task(score_tasks(make_tasks(samples(1), scorers), scorers, rows.append, concurrency=1))
        for name in (first, *({"judged", "counted"} - {first})):
            ended[name].set()
            await asyncio.sleep(0.01)
            assert rows[-1].scorer == name
        await task

    asyncio.run(work())
    assert len(rows) == 2


def test_other_samples_are_scored_while_the_questions_on_one_wait_for_one_another():
    noted: list[str] = []

    @dataclass(frozen=True)
    class Numbered(Asking):
        async def ascore(self, sample: Sample, /) -> Score:
            self.noted.append(f"{self.name}{sample.id}")
            await asyncio.sleep(0.01)
            return Score.scored(self.name, 1)

    run(samples(2), [Numbered("a", noted), Numbered("b", noted)], concurrency=2)
    assert noted == ["a0", "a1", "b0", "b1"]


@pytest.mark.parametrize("concurrency", [1, 16])
def test_samples_are_pulled_only_as_there_is_room(concurrency):
    pulled = done = 0
    ahead: list[int] = []

    def reading() -> Iterator[Sample]:
        nonlocal pulled
        for sample in samples(50):
            pulled += 1
            ahead.append(pulled - done)
            yield sample

    def emit(row: Row) -> None:
        nonlocal done
        done += 1

    draw = random.Random(1)  # noqa: S311 - a draw, not a secret
    slow = Delayed(lambda sample: draw.randrange(5))
    asyncio.run(score_tasks(make_tasks(reading(), [slow]), [slow], emit, concurrency=concurrency))
    assert (pulled, done, max(ahead)) == (50, 50, concurrency)


def test_a_failing_scorer_leaves_the_rest():
    found = run(samples(5), [broken, fine])
    assert keys(found) == in_order(5, "broken", "fine")
    where = f"(test_runner.py, line {broken.function.__code__.co_firstlineno + 2}, in broken)"
    assert [row.score for row in found if row.score.scorer == "broken"] == [
        Score.failed("broken", f"ValueError: cannot score {index} {where}", error="ValueError") for index in range(5)
    ]
    assert all(row.score.value == 1 for row in found if row.score.scorer == "fine")


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_scorer_that_raises_that_it_was_canceled_though_it_was_not_leaves_the_rest(concurrency):
    @dataclass(frozen=True)
    class Leaking:
        name: str = "leaking"

        async def ascore(self, sample: Sample, /) -> Score:
            if sample.id in ("1", "2"):
                raise asyncio.CancelledError
            return Score.scored("leaking", 1)

    scores = [row.score for row in run(samples(9), [Leaking()], concurrency=concurrency)]
    assert [score.status for score in scores] == ["scored", "failed", "failed", *["scored"] * 6]
    assert scores[1].error == "CancelledError"
    assert scores[1].reason.startswith("CancelledError:  (test_runner.py, line ")


def test_each_score_has_its_own_calls_though_many_are_scored_at_once():
    @scorer
    async def asking(sample: Sample) -> float:
        await asyncio.sleep(0)
        record_calls(JudgeCall(judge="j", prompt=sample.id))
        await asyncio.sleep(0)
        return 1.0

    found = run(samples(10), [asking, fine], concurrency=4)
    calls = [[call.prompt for call in row.score.calls] for row in found]
    assert calls == [calls_of for index in range(10) for calls_of in ([str(index)], [])]


def test_without_samples_there_are_no_rows():
    found = run([], [fine])
    assert (list(found), str(found), found.stop_reason) == ([], "fine  none (n=0 of 0)", "")


@pytest.mark.parametrize("ran", [run, lambda *args: asyncio.run(arun(*args))], ids=["run", "arun"])
def test_scorers_that_cannot_be_told_apart_are_an_error_before_any_sample_is_read(ran):
    def untouched() -> Iterator[Sample]:
        pytest.fail("a sample was read")
        yield

    with pytest.raises(
        ConfigError,
        match=(
            r"^two scorers are called 'tool_call_f1'; rename one of them: as= in a config file or on the "
            r"command line, name= in Python$"
        ),
    ):
        ran(untouched(), [ToolCallF1(), fine, ToolCallF1()])
    with pytest.raises(ConfigError, match=r"^no scorers: name some with "):
        ran(untouched(), [])


@pytest.mark.parametrize("concurrency", [0, -1, 10_001, 10**25])
def test_a_run_of_no_samples_at_once_or_of_too_many_is_an_error_and_no_empty_run(concurrency):
    says = f"^concurrency must be between 1 and 10,000, found {concurrency}$"
    with pytest.raises(ConfigError, match=says):
        run(samples(2), [fine], concurrency=concurrency)


@pytest.mark.parametrize(
    "error", [TraceError("not JSON", index=3), ValueError("odd"), ExceptionGroup("two", [OSError()])]
)
@pytest.mark.parametrize("concurrency", [1, 4])
def test_an_error_of_the_samples_surfaces_as_itself_with_its_cause(error, concurrency):
    cause = KeyError("why")

    def reading() -> Iterator[Sample]:
        yield from samples(3)
        raise error from cause

    with pytest.raises(type(error)) as caught:
        run(reading(), [Delayed(lambda sample: 2)], concurrency=concurrency)
    assert caught.value is error
    assert error.__cause__ is cause


def test_an_error_of_the_samples_stops_those_under_way():
    canceled: list[str] = []

    @scorer
    async def waiting(sample: Sample) -> float:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            canceled.append(sample.id)
            raise
        return 1.0

    def reading() -> Iterator[Sample]:
        yield from samples(2)
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        run(reading(), [waiting], concurrency=3)
    assert sorted(canceled) == ["0", "1"]


def test_an_error_of_who_takes_the_rows_surfaces_as_itself():
    def full(row: Row) -> None:
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        asyncio.run(score_tasks(make_tasks(samples(3), [fine]), [fine], full, concurrency=16))


def test_scorers_that_wait_for_nothing_let_others_work():
    """Else Ctrl-C would not get through, nor a notebook's other cells."""
    ticks = 0

    async def work() -> None:
        nonlocal ticks
        task = asyncio.create_task(
            score_tasks(make_tasks(map(slow_sample, range(20)), [fine]), [fine], lambda row: None, concurrency=16)
        )
        while not task.done():
            ticks += 1
            await asyncio.sleep(0)

    def slow_sample(index: int) -> Sample:
        time.sleep(0.005)  # as reading may take, without giving control away
        return Sample(id=str(index))

    asyncio.run(work())
    assert ticks >= 3


def test_under_a_running_loop_run_uses_a_thread_of_its_own():
    async def notebook() -> Run:
        return run(samples(5), [Delayed(lambda sample: 3), fine])

    assert keys(asyncio.run(notebook())) == in_order(5, "delayed", "fine")


BEHAVING = """
    import asyncio, json, signal
    from judgekit import Sample, run, scorer
    from itertools import count

    signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started the tests may have switched it off

    @scorer
    async def slow(sample):
        if sample.id == "20":
            print("under way", flush=True)
        await asyncio.sleep(0.001)
        return 1.0

    @scorer
    def quick(sample):
        return 0.5

    def work():
        found = run((Sample(id=str(index)) for index in count()), [slow, quick], concurrency=4)
        rows = [[row.index, row.sample_id, row.score.scorer, row.score.value] for row in found]
        print(json.dumps({"stopped": found.stop_reason, "rows": rows, "str": str(found)}))
"""
CALLED = {
    "a script": "work()",
    "a notebook": """
        async def cell():
            work()
        loop = asyncio.new_event_loop()  # as a notebook has it: a loop that does not catch Ctrl-C itself
        loop.run_until_complete(cell())
        loop.close()
    """,
}


@pytest.mark.parametrize("called", CALLED.values(), ids=CALLED)
def test_ctrl_c_stops_a_run_and_keeps_what_is_done(called, tmp_path, forked):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(BEHAVING) + textwrap.dedent(called))
    process = forked("python", script)
    assert process.stdout.readline() == "under way\n"
    process.send_signal(signal.SIGINT)
    assert process.stderr.readline() == "counting the samples that the run did not reach; press Ctrl-C to skip this\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (0, "")
    found = json.loads(out)
    assert found["stopped"] == "interrupted"
    done = {name: [index for index, _, scorer, _ in found["rows"] if scorer == name] for name in ("slow", "quick")}
    assert set(done["slow"]) >= set(range(17))  # of the 20 before, three may still have been under way
    assert set(done["quick"]) <= set(done["slow"])
    assert [tuple(row) for row in found["rows"]] == sorted(
        (tuple(row) for row in found["rows"]), key=lambda row: (row[0], row[2] != "slow")
    )
    assert all((name, value) in {("slow", 1.0), ("quick", 0.5)} for _, _, name, value in found["rows"])
    assert found["str"].splitlines()[-1] == "stopped early (interrupted): only the scores so far are counted"
    assert all(f"n={len(those)} of at least " in found["str"] for those in done.values())


def spent_after(number: int, error: type[Exception] = BudgetError):
    """A scorer whose budget is spent after so many samples, and the samples that it saw."""
    seen: list[str] = []

    @scorer
    async def judged(sample: Sample) -> float:
        seen.append(sample.id)
        place = len(seen)
        await asyncio.sleep(0.001)
        if place > number:
            raise error("the budget of 5 requests is spent")
        await asyncio.sleep(0.01)
        return 1.0

    return judged, seen


@pytest.mark.parametrize("error", STOPS_JUDGE)
def test_a_judge_that_stops_ends_a_run_when_what_is_under_way_is_done_and_no_other_scorer_is_left(error, monkeypatch):
    """Of samples without an end, too: they are counted for some time."""
    monkeypatch.setattr(session, "_COUNTING_SECONDS", 0.1)
    judged, seen = spent_after(5, error)
    found = run((Sample(id=str(index)) for index in count()), [judged], concurrency=4)
    assert found.stop_reason == "the budget of 5 requests is spent"
    assert keys(found.rows(scorer="judged")) == in_order(5, "judged")
    assert len(seen) <= 8  # the five, and those that were under way beside them
    assert "n=5 of at least " in str(found)
    assert str(found).splitlines()[-1] == (
        "stopped early (the budget of 5 requests is spent): only the scores so far are counted"
    )


@pytest.mark.parametrize("error", STOPS_JUDGE)
def test_scorers_of_other_judges_go_on_when_one_stops(error):
    noted: list[str] = []
    spent = Asking("judged", noted, error=error("spent"))
    found = run(samples(3), [spent, Asking("other", noted), Asking("counted", noted, prompts=())], concurrency=1)
    assert found.stop_reason == "spent"
    assert noted.count("judged") == 1
    assert [len(list(found.rows(scorer=name))) for name in ("judged", "other", "counted")] == [0, 3, 3]


def test_a_spent_budget_is_raised_to_those_who_take_the_rows_themselves():
    judged, _ = spent_after(5)
    rows: list[Row] = []
    with pytest.raises(BudgetError, match="5 requests"):
        asyncio.run(score_tasks(make_tasks(samples(50), [judged]), [judged], rows.append, concurrency=2))
    assert {row.sample_id for row in rows} == set("01234")


def talks(number: int) -> list[Sample]:
    return [Sample.of([HumanMessage("Hi"), AIMessage("Hi")], id=str(index)) for index in range(number)]


@pytest.mark.parametrize("number", [0, 5])
def test_conversations_are_counted_that_were_scored_and_no_others(number):
    for ran in (lambda *given: run(*given, concurrency=4), lambda *given: asyncio.run(arun(*given, concurrency=4))):
        judged, seen = spent_after(number)
        found = ran(talks(50), [judged, *([] if number else [fine])])
        assert found.stop_reason
        assert len(seen) > number
        assert found.usage.conversations == len({row.index for row in found})
        assert len(list(found.rows(scorer="judged"))) == number
    assert run(talks(3), [fine]).usage == asyncio.run(arun(talks(3), [fine])).usage


@pytest.mark.parametrize("error", [AuthenticationError("no key"), ModelError("no model"), StoreError("disk full")])
def test_what_every_sample_would_meet_ends_a_run_at_once(error):
    seen: list[str] = []

    @scorer
    async def judged(sample: Sample) -> float:
        seen.append(sample.id)
        if sample.id == "3":
            raise error
        await asyncio.sleep(30)
        return 1.0

    started = time.monotonic()
    with pytest.raises(type(error), match=str(error)):
        run((Sample(id=str(index)) for index in count()), [judged], concurrency=4)
    assert time.monotonic() - started < 20
    assert seen == list("0123")
