"""Where runs are kept."""

import asyncio
import json
import math
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.errors import StoreError
from judgekit.jobs.api import run
from judgekit.runs.recorder import Recorder
from judgekit.runs.results import Run
from judgekit.runs.rows import Input, Row, RunRecord, ScorerRecord, identity_differences
from judgekit.runs.schema import SCHEMA_VERSION, checksum
from judgekit.runs.store import RunStore, now
from judgekit.score import JudgeCall, JudgeExchange, Score, record_calls
from judgekit.scorers.tool_calls.f1 import ToolCallF1
from judgekit.scoring import scorer
from judgekit.traces.message import AIMessage, HumanMessage, ToolCall, Usage
from judgekit.traces.recording import Label
from judgekit.traces.sample import Sample
from judgekit.traces.trace import Trace

RUNS = Path("kept") / "runs.sqlite"


@scorer
def fine(sample: Sample) -> float:
    return 1.0


def samples(number: int) -> list[Sample]:
    return [Sample.of([HumanMessage("Hi"), AIMessage("Hello")], id=str(index)) for index in range(number)]


def ask(path: Path, sql: str) -> list[tuple]:
    with closing(sqlite3.connect(path)) as db:
        return db.execute(sql).fetchall()


# --- what is kept is what there was

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
numbers = st.floats(allow_nan=False) | st.integers() | st.sampled_from([0.0, -0.0, 10**400, 1e308, 5e-324])
json_values = st.recursive(
    st.none() | st.booleans() | numbers | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)
usages = st.builds(
    Usage, input_tokens=st.none() | st.integers(0, 10**9), output_tokens=st.none() | st.integers(0, 10**9)
)
judge_calls = st.builds(
    JudgeCall,
    judge=words,
    prompt=words,
    cached=st.booleans(),
    usage=st.none() | usages,
    cost_usd=st.none() | st.floats(0, 100),
    seconds=st.floats(0, 1_000),
    error=st.none() | words,
)
explained = {
    "label": st.none() | words,
    "reason": words,
    "details": st.dictionaries(words, json_values, max_size=4),
    "calls": st.lists(judge_calls, max_size=3).map(tuple),
    "confidence": st.none() | st.floats(0, 1),
    "aggregate": st.just("mean") | words,
    "warnings": st.lists(words, max_size=2).map(tuple),
}
scores = st.one_of(
    st.builds(Score, scorer=st.just("s"), status=st.just("scored"), value=st.floats(0, 1), **explained),
    st.builds(
        Score,
        scorer=st.just("s"),
        status=st.sampled_from(["skipped", "failed", "abstained"]),
        error=st.none() | words,
        **explained,
    ),
)


@given(st.lists(scores, min_size=1, max_size=5))
def test_a_score_is_the_same_after_it_was_kept(run_of, given_scores):
    rows = [Row(index=index, sample_id=str(index), score=score) for index, score in enumerate(given_scores)]
    assert list(run_of(*rows)) == rows


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_none_is_kept_as_it_is(run_of, number):
    (row,) = run_of(Row(index=0, sample_id="a", score=Score.scored("s", 1, details={"x": [number]})))
    assert repr(row.score.details) == repr({"x": [number]})


def test_what_a_row_says_of_its_sample_is_kept():
    labeled = Trace(
        id="t",
        messages=[HumanMessage("Hi")],
        labels=[
            Label("human", value=True, source="human"),
            Label("reward", 0.5, source="benchmark"),
            Label("kind", "refund", source="judge"),
            Label("mood", "good"),
        ],
    )
    given_samples = [
        Sample(id="a\x00\x1b", trace=labeled, group="g", domain="法", label="good"),
        Sample(id="b", trace=Trace(messages=[HumanMessage("Hello")])),
    ]
    run(given_samples, [fine], store=RUNS)
    first, second = Run.stored(path=RUNS)
    known = {"label": "good", "human": True, "reward": 0.5, "mood": "good", "kind": "refund"}
    sources = {"label": "benchmark", "human": "human", "reward": "benchmark", "mood": "unknown", "kind": "judge"}
    assert first.model_dump(exclude={"score"}) == {
        "index": 0, "sample_id": "a\x00\x1b", "trace_id": "t", "group": "g", "copied": None, "domain": "法", "labels": known,
        "label_sources": sources
    }  # fmt: skip
    assert [type(value) for value in first.labels.values()] == [str, bool, float, str, str]
    assert second == Row(index=1, sample_id="b", score=Score.scored("fine", 1))


def test_a_label_on_which_annotators_disagree_is_left_out():
    labels = [Label(name="human", value=True, annotator="a"), Label(name="human", value=False, annotator="b")]
    agreed = [Label(name="kind", value="x", annotator="a"), Label(name="kind", value="x", annotator="b")]
    (row,) = run([Sample(id="a", trace=Trace(labels=[*labels, *agreed]))], [fine])
    assert row.labels == {"kind": "x"}


def test_a_judge_does_not_dispute_the_label_of_a_person():
    """Else only those labels would stay on which the two agree."""
    labels = [Label("goal", value=False, source="judge"), Label("goal", value=True, source="human")]
    alone = Label("tone", "kind", source="judge")
    (row,) = run([Sample(id="a", trace=Trace(labels=[*labels, alone]))], [fine])
    assert (row.labels, row.label_sources) == ({"goal": True, "tone": "kind"}, {"goal": "human", "tone": "judge"})


def test_a_score_that_no_file_can_hold_is_a_failed_score_that_says_so(run_of):
    odd = [
        Score.scored("s", 1, reason="a \ud800"),
        Score.scored("s", 1, label="\udfff"),
        Score.scored("s", 1, details={"\ud800": 1}),
        Score.scored("s", 1, warnings=["\ud800"]),
        Score.failed("s", "why", error="\ud800"),
        Score.scored("s", 1, aggregate="\ud800"),
    ]
    found = [row.score for row in run_of(*(Row(index=i, sample_id="a", score=one) for i, one in enumerate(odd)))]
    assert [one.status for one in found] == ["failed"] * len(odd)
    assert {one.error for one in found} == {"StoreError"}
    assert all(one.reason.startswith("the score cannot be written: ") for one in found)


def test_an_id_that_no_file_can_hold_is_kept_as_near_as_it_can_be(run_of):
    (row,) = run([Sample(id="a\ud800", group="\udfff", label="\ud800")], [fine], store=RUNS)
    assert (row.sample_id, row.group, row.labels) == (r"a\ud800", r"\udfff", {"label": r"\ud800"})
    assert row.score.value == 1.0


@pytest.mark.parametrize("reason", ["fine", "a \ud800"])
def test_a_call_that_no_file_can_hold_is_kept_as_near_as_it_can_be(run_of, reason):
    call = JudgeCall(judge="j", prompt="\ud800", model="\udfff", cost_usd=0.25)
    (row,) = run_of(Row(index=0, sample_id="a", score=Score.scored("s", 1, reason=reason, calls=[call])))
    assert row.score.status == ("scored" if reason == "fine" else "failed")
    assert row.score.calls == (call.model_copy(update={"prompt": r"\ud800", "model": r"\udfff"}),)


def test_conversations_and_what_judges_said_are_kept_with_a_run():
    exchange = JudgeExchange(messages=[("system", "You judge."), ("user", "Was it good? \x00")], reply='{"good": true}')

    @scorer
    def judged(sample: Sample) -> Score:
        record_calls(JudgeCall(judge="j", prompt="p@1", exchange=exchange))
        record_calls(JudgeCall(judge="j", prompt="p@1", error="OverloadError"))
        record_calls(JudgeCall(judge="j", prompt="p@2", exchange=exchange.model_copy(update={"reply": None})))
        return Score.scored("judged", 1)

    given_samples = [
        Sample.of([AIMessage(tool_calls=[ToolCall("f", {"x": 1})])], id=name, fields={"a": 1}) for name in "ab"
    ]
    run(given_samples, [fine, judged], store=RUNS)
    found = Run.stored(path=RUNS)
    assert list(found.conversations()) == list(enumerate(given_samples))
    assert [(number, name, place, one.reply) for number, name, place, one in found.exchanges()] == [
        (number, "judged", place, reply) for number in (0, 1) for place, reply in ((0, exchange.reply), (2, None))
    ]
    assert next(found.exchanges())[3] == exchange
    assert [len(row.score.calls) for row in found.rows(scorer="judged")] == [3, 3]
    in_memory = run(given_samples, [fine, judged])
    assert list(in_memory.conversations()) == list(found.conversations())
    assert list(in_memory.exchanges()) == list(found.exchanges())
    assert list(in_memory) == list(found)


def test_runs_are_numbered_and_known_with_all_that_was_said_of_them():
    with pytest.raises(StoreError, match=r"^kept/runs.sqlite: there are no runs yet; judgekit run creates one$"):
        Run.stored(path=RUNS)
    began = now()
    first = run(samples(2), [fine], store=RUNS)
    second = run(samples(3), [fine], store=RUNS)
    assert (first.number, second.number) == (1, 2)
    assert RunStore(RUNS).numbers() == [1, 2]
    assert (Run.stored(path=RUNS).number, len(Run.stored(path=RUNS)), len(Run.stored(1, RUNS))) == (2, 3, 2)
    again = Run.stored(1, RUNS)
    assert again.record == first.record
    assert began <= again.started_at <= again.ended_at <= now()
    assert (again.stop_reason, again.inputs, [one.name for one in again.scorers]) == ("", (), ["fine"])
    assert again.scorers[0].signature == first.scorers[0].signature
    assert str(again) == str(first)
    with pytest.raises(StoreError, match=r"contains no run 3; judgekit runs lists the runs$"):
        Run.stored(3, RUNS)


def test_what_judges_said_for_a_score_goes_when_it_is_made_again():
    run(samples(1), [fine], store=RUNS)
    store = RunStore(RUNS)
    said = JudgeExchange(messages=[("user", "Was it good?")], reply="?")
    call = JudgeCall(judge="j", prompt="p", exchange=said)
    failed = Score.failed("fine", "no verdict", calls=[call, call])
    for score in (failed, Score.scored("fine", 1, calls=[call.model_copy(update={"exchange": None}), call])):
        recorder = Recorder(store, store.record())
        recorder.add_row(Row(index=0, sample_id="0", score=score))
        recorder.flush()
    assert list(store.exchanges(1)) == [(0, "fine", 1, said)]


def test_a_score_leaves_what_was_paid_for_other_scores_of_its_sample():
    said = JudgeExchange(messages=[("user", "Was it good?")], reply="?")
    store = RunStore(RUNS)
    scorers = [ScorerRecord(name=name, signature=None, identity=None, judged=True) for name in ("a", "b")]
    begun = store.begin(RunRecord(started_at=now(), scorers=scorers))
    for name in ("a", "b"):
        recorder = Recorder(store, begun)
        recorder.add_sample(0, Sample.of([HumanMessage("Hello")], id="0"))
        calls = [JudgeCall(judge="j", prompt=name, exchange=said)]
        recorder.add_row(Row(index=0, sample_id="0", score=Score.scored(name, 1, calls=calls)))
        recorder.flush()
    assert [scorer for _, scorer, _, _ in store.exchanges(1)] == ["a", "b"]
    assert list(store.unscored_calls(1)) == []


def test_without_text_no_word_of_a_conversation_is_in_the_file(run_of):
    exchange = JudgeExchange(messages=[("user", "SECRET")], reply="SECRET")
    score = Score.scored(
        "s", 0.5, label="tie", reason="SECRET", details={"n": 1, "said": "SECRET"},
        calls=[JudgeCall(judge="j", prompt="p", exchange=exchange)],
    )  # fmt: skip
    store = RunStore(RUNS)
    known = [ScorerRecord(name="s", signature=None, identity=None, judged=True)]
    begun = store.begin(RunRecord(started_at=now(), scorers=known, keeps_text=False))
    recorder = Recorder(store, begun)
    recorder.add_sample(0, Sample.of([HumanMessage("SECRET")], id="a"))
    recorder.add_row(Row(index=0, sample_id="a", score=score))
    recorder.flush()
    assert not any(b"SECRET" in file.read_bytes() for file in RUNS.parent.iterdir())
    assert [sample.hashes[1:] for sample in store.scored_samples(1)] == [(None, None)]
    (row,) = Run.stored(path=RUNS)
    assert (row.score.value, row.score.label, row.score.details) == (0.5, "tie", {})
    assert list(Run.stored(path=RUNS).conversations()) == list(Run.stored(path=RUNS).exchanges()) == []
    assert not store.has_all_conversations(1)


# --- when it is kept


def test_a_row_is_there_as_soon_as_it_is_scored():
    """Somebody else sees it while the other scorer of the sample is still at work."""
    go_on = threading.Event()

    @scorer
    async def slow(sample: Sample) -> float:
        while not go_on.is_set():  # noqa: ASYNC110 - by another thread
            await asyncio.sleep(0.01)
        return 1.0

    work = threading.Thread(target=run, args=(samples(3), [fine, slow]), kwargs={"store": RUNS, "concurrency": 1})
    work.start()
    try:
        scored = time.monotonic()
        while not (RUNS.exists() and _rows_seen()):
            assert time.monotonic() - scored < 20
            time.sleep(0.01)
        assert _rows_seen() == [("0", "fine")]
        assert Run.stored(path=RUNS).ended_at is None
        assert [number for number, _ in Run.stored(path=RUNS).conversations()] == [0]
    finally:
        go_on.set()
        work.join()
    assert len(Run.stored(path=RUNS)) == 6


def _rows_seen() -> list[tuple[str, str]]:
    try:
        return [(row.sample_id, row.scorer) for row in Run.stored(path=RUNS)]
    except StoreError:  # it is being made
        return []


def test_two_that_write_runs_into_one_file_at_once_do_not_disturb_each_other():
    at_once = threading.Barrier(4)

    def work() -> None:
        at_once.wait()
        assert len(run(samples(100), [fine], store=RUNS)) == 100

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(Run.stored(number, RUNS)) for number in (1, 2, 3, 4)] == [100] * 4


def test_what_is_kept_can_be_read_while_others_write_and_so_can_be_scored_again():
    run(samples(3), [fine], store=RUNS)
    reader, other = RunStore(RUNS), RunStore(RUNS)
    record = reader.record()
    found = []
    for number, _ in reader.conversations(1):
        for store in (other, reader):
            store.change(record)
        found.append(number)
    assert found == [0, 1, 2]


def test_two_that_add_scorers_to_one_run_do_not_take_each_other_s_place():
    run(samples(1), [fine], store=RUNS)
    store = RunStore(RUNS)
    before = store.record()

    def adding(name: str) -> RunRecord:
        added = ScorerRecord(name=name, signature=None, identity=None, judged=False)
        return before.model_copy(update={"scorers": (*before.scorers, added), "options": {"file": name}})

    store.change(adding("mine"))
    with pytest.raises(StoreError, match="another program has just added scorers to run 1; try again"):
        store.change(adding("yours"))
    store.change(before.model_copy(update={"stop_reason": "interrupted"}))  # by one that began before and ends now
    found = store.record()
    assert ([one.name for one in found.scorers], found.options) == (["fine", "mine"], {"file": "mine"})
    assert found.stop_reason == "interrupted"


def test_a_program_may_end_in_the_middle_of_reading(run_python):
    """The file is closed then, and whoever still reads says nothing of it."""
    ended = run_python(
        "-c",
        "from judgekit import Sample, run, scorer\n"
        "found = run([Sample(id='a'), Sample(id='b')], [scorer(name='s', version='1')(lambda _: 1.0)], store='a.sqlite')\n"
        "rows, conversations = iter(found), found.conversations()\n"
        "print(next(rows).sample_id, next(conversations)[0])\n"
        "del found\n",
    )
    assert (ended.stdout, ended.stderr) == ("a 0\n", "")


# --- the file


def test_the_file_is_made_to_outlive_a_fall_of_power():
    store = RunStore(RUNS)
    with store.transaction() as db:
        found = [
            db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous", "application_id")
        ]
    assert found == ["wal", 2, int.from_bytes(b"jrun")]
    assert ask(RUNS, "PRAGMA user_version") == [(SCHEMA_VERSION,)]


def test_a_folder_of_our_own_is_not_for_committing_and_one_of_the_user_s_is_theirs():
    Path(".judgekit/audits").mkdir(parents=True)  # as a clone has it
    run(samples(1), [fine], store=".judgekit/runs.sqlite")
    run(samples(1), [fine], store="mine/deep/runs.sqlite")
    assert (
        Path(".judgekit/.gitignore").read_text()
        == "*\n!/.gitignore\n!/audits/\n!/audits/*.json*\n!/failures/\n!/failures/*.json\n"
    )
    assert [one.name for one in Path("mine/deep").iterdir()] == ["runs.sqlite"]


def test_a_file_whose_name_has_signs_of_its_own_is_that_file():
    name = "a?mode=memory&x#y %20 法.sqlite"
    run(samples(1), [fine], store=name)
    assert [one.name for one in Path().iterdir()] == [name]
    assert len(Run.stored(path=name)) == 1


# --- files that are no good


def bad_file(content: bytes) -> None:
    RUNS.parent.mkdir()
    RUNS.write_bytes(content)


def overwritten() -> None:
    run(samples(100), [fine], store=RUNS)
    ask(RUNS, "PRAGMA journal_mode = DELETE")
    content = bytearray(RUNS.read_bytes())
    content[4096:-1] = b"\xff" * len(content[4096:-1])
    RUNS.write_bytes(content)


def truncated() -> None:
    run(samples(100), [fine], store=RUNS)
    ask(RUNS, "PRAGMA journal_mode = DELETE")
    RUNS.write_bytes(RUNS.read_bytes()[:10_000])


def another_program() -> None:
    RUNS.parent.mkdir()
    with closing(sqlite3.connect(RUNS)) as db, db:
        db.execute("CREATE TABLE theirs (x)")


def with_code(sql: str) -> None:
    run(samples(1), [fine], store=RUNS)
    ask(RUNS, sql)


def newer() -> None:
    run(samples(1), [fine], store=RUNS)
    ask(RUNS, "PRAGMA user_version = 99")


def locked() -> sqlite3.Connection:
    run(samples(1), [fine], store=RUNS)
    db = sqlite3.connect(RUNS, isolation_level=None)
    db.execute("BEGIN IMMEDIATE")
    return db


BAD = {
    "no database": (lambda: bad_file(b"Dear diary, today I wrote a file."), "file is not a database; it is not a database: name another file"),
    "overwritten": (overwritten, "it is damaged: move it away, or name another file"),
    "cut off": (truncated, "it is damaged: move it away, or name another file"),
    "another program's": (another_program, "kept/runs.sqlite: belongs to another program; name another file"),
    "a trigger": (lambda: with_code("CREATE TRIGGER t AFTER INSERT ON scores BEGIN DELETE FROM samples; END"), "holds triggers or views"),
    "a view": (lambda: with_code("CREATE VIEW v AS WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n FROM r) SELECT n FROM r"), "holds triggers or views"),
    "newer": (newer, "kept/runs.sqlite: written by a newer judgekit (schema 99); update judgekit, or name another file"),
    "a folder": (lambda: RUNS.mkdir(parents=True), "kept/runs.sqlite: cannot hold runs: it is a folder; name a file in it"),
    "in a file": (lambda: Path("kept").write_text("x"), "kept/runs.sqlite: "),
    "locked": (locked, "database is locked; another program is writing to it; try again when it is done"),
}  # fmt: skip


@pytest.mark.parametrize(("make", "message"), BAD.values(), ids=BAD)
def test_a_file_that_cannot_be_used_says_why_before_any_sample_is_read(make, message, monkeypatch):
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *given, **named: connect(*given, **{**named, "timeout": 0.05}))
    held = make()

    def untouched() -> Iterator[Sample]:
        pytest.fail("a sample was read")
        yield

    with pytest.raises(StoreError) as caught:
        run(untouched(), [fine], store=RUNS)
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(RUNS))
    if isinstance(held, sqlite3.Connection):
        held.close()


def test_an_empty_file_is_as_good_as_none():
    RUNS.parent.mkdir()
    RUNS.touch()
    assert len(run(samples(2), [fine], store=RUNS)) == 2


@pytest.mark.parametrize("replaced", [False, True], ids=["deleted", "replaced"])
def test_a_file_that_is_deleted_or_replaced_meanwhile_ends_the_run(replaced):
    def reading() -> Iterator[Sample]:
        for index in count():
            if index == 3:
                RUNS.unlink()
                if replaced:
                    RUNS.write_bytes(b"")
            yield Sample(id=str(index))

    @scorer
    async def slow(sample: Sample) -> float:
        await asyncio.sleep(0.01)
        return 1.0

    with pytest.raises(StoreError, match=r"^kept/runs.sqlite: was deleted or replaced while it was in use; "):
        run(reading(), [slow], store=RUNS)


def test_a_full_disk_ends_the_run_and_what_was_kept_until_then_is_sound(monkeypatch):
    prepare = RunStore._prepare

    def small(self: RunStore, db: sqlite3.Connection, *, read_only: bool) -> None:
        prepare(self, db, read_only=read_only)
        if not read_only:
            db.execute("PRAGMA max_page_count = 150")

    monkeypatch.setattr(RunStore, "_prepare", small)

    @scorer
    async def wordy(sample: Sample) -> tuple[float, str]:
        await asyncio.sleep(0.01)
        return 1.0, "why " * 200

    with pytest.raises(StoreError, match="free some disk space; the scores so far are saved"):
        run((Sample(id=str(index)) for index in count()), [wordy], store=RUNS)
    assert ask(RUNS, "PRAGMA integrity_check") == [("ok",)]
    assert len(Run.stored(path=RUNS)) > 0


def test_who_only_reads_changes_nothing_and_needs_no_right_to_write():
    run(samples(2), [fine], store=RUNS)
    found = Run.stored(path=RUNS)
    with pytest.raises(StoreError, match=r"attempt to write a readonly database; it and its folder must be writable"):
        found.store.begin(RunRecord(started_at=now()))
    assert len(found) == 2


# --- what a run is known by


def test_a_file_is_known_by_its_content(tmp_path):
    Path("a").write_bytes(b"abc")
    # FIPS 180-2, B.1
    assert Input.of(Path("a")).sha256 == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (["a.B", {"mode": "f1", "x": 1}, None], ["a.B", {"mode": "recall", "x": 1}, None], ["mode was 'f1' and is 'recall'"]),
        (["a.B", {"judge": ["J", {"model": "m"}, None]}, None], ["a.B", {"judge": ["J", {"model": "n"}, None]}, None], ["judge.model was 'm' and is 'n'"]),
        (["a.B", {}, ["p", "1"]], ["a.B", {}, ["p", "2"]], ["[2][1] was '1' and is '2'"]),
        (["a.B", {}, None], ["a.C", {}, None], ["[0] was 'a.B' and is 'a.C'"]),
        (["a.B", {"x": 1}, None], ["a.B", {"y": 1}, None], ["x was 1 and is None", "y was None and is 1"]),
        ("f", "f", []),
    ],
)  # fmt: skip
def test_it_is_said_in_what_two_scorers_differ(before, after, said):
    assert list(identity_differences(before, after)) == said


def test_scorers_are_kept_with_their_options_and_whether_they_ask_a_judge():
    class Odd:
        name = "odd"

        async def ascore(self, sample: Sample, /) -> Score:
            return Score.scored(self.name, 1)

    run(samples(1), [fine, Odd()], store=RUNS)
    known, unknown = Run.stored(path=RUNS).scorers
    assert (len(known.signature), known.judged, json.dumps(known.identity).count("fine")) == (16, False, 1)
    assert (unknown.signature, "make the scorer a dataclass" in unknown.identity) == (None, True)


def test_rows_of_as_many_samples_as_there_are_can_be_asked_for():
    """SQLite would take no more than some thousands of numbers one by one."""
    run(samples(3), [fine], store=RUNS)
    assert [row.index for row in Run.stored(path=RUNS).rows(numbers=range(1, 100_000))] == [1, 2]


def test_a_file_that_is_being_made_has_no_runs_yet():
    RUNS.parent.mkdir()
    sqlite3.connect(RUNS).close()
    RUNS.touch()
    with pytest.raises(StoreError, match="there are no runs yet; judgekit run creates one"):
        RunStore(RUNS, read_only=True)


@pytest.mark.parametrize("levels", [179, 180])
def test_arguments_of_any_depth_are_stored_and_read_again(tmp_path, levels):
    call = ToolCall("f", '{"a": ' + "[" * levels + "]" * levels + "}")
    sample = Sample.of(
        [HumanMessage("q"), AIMessage("", tool_calls=[call])], reference_tool_calls=[ToolCall("f", {"a": 1})]
    )
    scored = run([sample], [ToolCallF1()], store=tmp_path / "runs.sqlite")
    assert [kept for _, kept in scored.store.conversations(1)] == [sample]
    assert len(scored) == 1
    assert (call.args == {}) is (levels > 179)


def test_a_value_that_no_score_can_have_is_damage():
    run(samples(1), [fine], store=RUNS)
    with closing(sqlite3.connect(RUNS)) as db, db:
        row = db.execute("SELECT * FROM scores").fetchone()
        db.execute("UPDATE scores SET value = 7.0, checksum = ?", [checksum((*row[:4], 7.0, *row[5:-1]))])
    with pytest.raises(
        StoreError, match="the score of sample 0 is damaged: expected a value and a confidence from 0 to 1"
    ):
        list(Run.stored(path=RUNS))
