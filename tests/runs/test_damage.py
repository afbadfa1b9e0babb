# ruff: noqa: S608 - statements of the words below
"""Files of runs that are damaged: each row is what was written, or is named, or the file is refused."""

import json
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from math import inf
from pathlib import Path
from shutil import copyfile

import pytest

from judgekit.analysis.gates import check_gates
from judgekit.errors import StoreError
from judgekit.reports.export import report
from judgekit.runs.hashes import SampleHashes
from judgekit.runs.recorder import Recorder
from judgekit.runs.results import Run
from judgekit.runs.rows import DAMAGED_ROW, Row, RunRecord, ScorerRecord
from judgekit.runs.schema import PART_TABLES
from judgekit.runs.store import RunStore, now
from judgekit.score import JudgeCall, JudgeExchange, Score
from judgekit.traces.message import AIMessage, HumanMessage, Usage
from judgekit.traces.sample import Sample

SAMPLES = 12
GOOD = Path("good.sqlite")
VALUES = (None, 7.5, inf, -1, "garbage", '["other", {}]', b"\xff\x00", 2**62, 0, 1)


def write(path: Path, samples: int = SAMPLES) -> None:
    """Two runs, each of a scorer that asks a judge and one that asks none."""
    store = RunStore(path)
    scorers = [
        ScorerRecord(name=name, signature=name, identity=name, judged=name == "judged") for name in ("judged", "plain")
    ]
    for _ in range(2):
        begun = RunRecord(
            started_at=now(),
            ended_at=now(),
            scorers=scorers,
            samples=samples,
            count_precision="exactly",
            read_to_end=True,
        )
        record = store.begin(begun)
        recorder = Recorder(store, record)
        for number in range(samples):
            messages = [HumanMessage(f"Question {number}?"), AIMessage(f"Answer {number}." * 5)]
            one = Sample.of(messages, id=f"s{number}", group=f"g{number // 2}", domain="ab"[number % 2], label="yes")
            said = JudgeExchange(messages=[("user", f"Question {number}?")], reply=f"{number}")
            call = JudgeCall(judge="j/m", prompt="p@1", usage=Usage(input_tokens=7, output_tokens=3), exchange=said)
            recorder.add_sample(number, one)
            value, details = number / samples, {"number": number}
            recorder.add_row(
                Row.of(number, one, Score.scored("judged", value, label="ok", calls=[call], confidence=0.5))
            )
            recorder.add_row(Row.of(number, one, Score.scored("plain", value, reason="why not " * 9, details=details)))
        recorder.flush()
        recorder.add_ledger(0, "judged", [call])
        recorder.flush()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def flip(path: Path, dice: random.Random) -> str:
    """Changes bytes in the file, as a bad disk does."""
    body = bytearray(path.read_bytes())
    places = [dice.randrange(len(body)) for _ in range(dice.choice((1, 1, 8)))]
    for place in places:
        body[place] ^= 1 << dice.randrange(8)
    path.write_bytes(body)
    return f"bytes {places}"


def update(path: Path, dice: random.Random) -> str:
    """Gives one cell another value, as far as the table takes it."""
    with closing(sqlite3.connect(path)) as db, db:
        while True:
            table = dice.choice(["runs", *PART_TABLES])
            columns = [name for _, name, *_ in db.execute(f"PRAGMA table_info({table})")]
            column, value = dice.choice(columns), dice.choice(VALUES)
            rows = db.execute(f"SELECT * FROM {table}").fetchall()
            row = dice.choice(rows) if rows else ()
            key = " AND ".join(f'"{name}" IS ?' for name in columns)
            if not row or row[columns.index(column)] == value:
                continue
            try:
                db.execute(f'UPDATE {table} SET "{column}" = ? WHERE {key}', (value, *row))
            except sqlite3.Error:
                continue
            return f"{table}.{column} of {row[:4]} is {value!r}"


def damages(seeds: range) -> Iterator[tuple[str, Path]]:
    """Damaged files, each with what was done to it."""
    for seed in seeds:
        dice = random.Random(seed)  # noqa: S311 - the same each time
        path = Path(f"bad-{seed}.sqlite")
        copyfile(GOOD, path)
        yield f"seed {seed}: {dice.choice((flip, update))(path, dice)}", path
        path.unlink()


def must_be_right_or_named(known: list[Row], path: Path) -> str:
    """Checks what is read of a damaged file, and says what became of it."""
    try:
        run = Run.stored(1, path)
        rows, summary = list(run), run.summary
        for row in rows:
            assert row.score.reason or row.score.details is not None
        lowest = list(run.lowest("plain", 5))
    except StoreError:
        return "refused"
    intact = [row for row in rows if row.score.error != DAMAGED_ROW]
    assert all(row in known for row in intact)
    assert all(row in known for row in lowest)
    for name in ("judged", "plain"):
        line = summary[name]
        there = [row for row in intact if row.scorer == name]
        assert list(line.values) == [row.score.value for row in there]
        assert len(there) == SAMPLES or line.damaged_samples or line.missing > 0
        assert not line.damaged_samples or f"damaged row{'s' if len(line.damaged_samples) > 1 else ''} left out" in str(
            summary
        )
        if line.damaged_samples:
            assert not check_gates(run, [f"{name} >= 0", "failed <= 100%"]).met
    for name in ("conversations", "exchanges"):
        try:
            found = list(getattr(run, name)())
        except StoreError:
            return "refused"
        whole = list(getattr(Run.stored(1, GOOD), name)())
        assert all(one in whole for one in found)
    for read in (run.usage, run.duplicate_ids, list(run.scored_samples()), run.audits):
        assert read is not None
    return "as it was" if len(intact) == len(known) else "named"


@pytest.mark.usefixtures("good")
def test_each_row_of_a_damaged_file_is_right_or_named():
    known = list(Run.stored(1, GOOD))
    found = set()
    for what, path in damages(range(40)):
        try:
            found.add(must_be_right_or_named(known, path))
        except Exception as error:
            raise AssertionError(what) from error
    assert found == {"refused", "as it was", "named"}


def changed(sql: str, *values: object) -> Run:
    """The run after a change that the program did not make."""
    with closing(sqlite3.connect(GOOD)) as db, db:
        assert db.execute(sql, values).rowcount == 1
    return Run.stored(1, GOOD)


@pytest.fixture(scope="module")
def _whole(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("whole") / GOOD
    write(path)
    return path


@pytest.fixture
def good(_whole) -> None:
    """A file that is not damaged yet."""
    copyfile(_whole, GOOD)


OF_SCORE = "WHERE run = 1 AND sample = 3 AND scorer = 1"


@pytest.mark.parametrize(
    "change",
    [
        *("value = 0.5", "value = 9e999", "calls = '['", "explanation = '[\"because\", {}]'", "checksum = 1"),
        "explanation = CAST(x'5bff' AS TEXT)",  # no UTF-8
    ],
)
def test_a_score_that_is_not_what_was_written_is_named_and_left_out_everywhere(good, change):
    run = changed(f"UPDATE scores SET {change} {OF_SCORE}")
    (damaged,) = [row for row in run if row.score.status == "failed"]
    assert (damaged.index, damaged.sample_id, damaged.scorer, damaged.score.error) == (3, "s3", "plain", DAMAGED_ROW)
    line = run.summary["plain"]
    others = [number / SAMPLES for number in range(SAMPLES) if number != 3]
    assert (line.value, line.total, line.missing) == (pytest.approx(sum(others) / len(others)), SAMPLES, 0)
    said = "1 damaged row left out: #3 's3'; judgekit resume repeats these scores"
    assert f"plain: {said}" in str(run)
    assert [row.index for row in run.lowest("plain", 5)][:4] == [0, 1, 2, 4]
    done = run.store.scored_by_sample(1, 0, 99)
    assert (done[2], done[3]) == ({0, 1}, {0})
    for name in ("page.html", "page.md"):
        report(run, name)
        assert "1 damaged row left out" in Path(name).read_text()
    report(run, "scores.jsonl")
    assert DAMAGED_ROW in Path("scores.jsonl").read_text()


def test_no_gate_on_a_scorer_with_a_damaged_row_is_met(good):
    run = changed(f"UPDATE scores SET value = 1 {OF_SCORE}")
    gates = ["plain >= 0", "plain.min >= 0", "failed <= 50%", "plain.n >= 1", "cost_usd <= 99", "plain.coverage >= 1%"]
    for gate in gates:
        (found,) = check_gates(run, [gate]).gates
        assert (found.met, "1 damaged row left out" in found.explanation) == (False, True), gate
    assert check_gates(run, ["judged >= 0"]).met


@pytest.mark.parametrize("change", ["id = 's4'", '"group" = NULL', "number = 77"])
def test_a_damaged_sample_takes_its_scores_with_it(good, change):
    run = changed(f"UPDATE samples SET {change} WHERE run = 1 AND number = 3")
    damaged = [row for row in run if row.score.error == DAMAGED_ROW]
    assert [(row.index, row.sample_id, row.scorer) for row in damaged] == [(3, "#3", "judged"), (3, "#3", "plain")]
    assert {sample.hashes for sample in run.scored_samples() if sample.number == 3} == {SampleHashes()}


@pytest.mark.parametrize("table", ["scores", "samples"])
def test_a_row_that_is_gone_is_missing_or_named(good, table):
    key = OF_SCORE if table == "scores" else "WHERE run = 1 AND number = 3"
    line = changed(f"DELETE FROM {table} {key}").summary["plain"]
    assert (line.counts["scored"], line.missing, len(line.damaged_samples)) == (
        11,
        *((1, 0) if table == "scores" else (0, 1)),
    )


@pytest.mark.parametrize("record", ["'{}'", "replace(record, 'plain', 'plaid')"])
def test_what_cannot_be_left_out_is_an_error_that_names_it(good, record: str):
    with pytest.raises(StoreError, match=r"good\.sqlite: .*run 1 is damaged"):
        changed(f"UPDATE runs SET record = {record} WHERE number = 1")


OF_CONVERSATION, OF_EXCHANGE = "WHERE run = 1 AND number = 3", "WHERE run = 1 AND sample = 3"


@pytest.mark.parametrize(
    ("change", "conversations", "exchanges", "said"),
    [
        (f"conversations SET sample = x'00' {OF_CONVERSATION}", {3}, set(), "1 damaged conversation left out: #3"),
        (f"conversations SET checksum = 1 {OF_CONVERSATION}", {3}, set(), "1 damaged conversation left out: #3"),
        (f"conversations SET number = 99 {OF_CONVERSATION}", {99}, set(), "1 damaged conversation left out: #99"),
        (f"exchanges SET exchange = x'00' {OF_EXCHANGE}", set(), {3}, "1 damaged judge exchange left out: #3"),
        (f"exchanges SET scorer = 7 {OF_EXCHANGE}", set(), {3}, "1 damaged judge exchange left out: #3"),
    ],
)
def test_a_damaged_conversation_or_reply_is_left_out_and_named_once(
    good, caplog, change, conversations, exchanges, said
):
    known = Run.stored(1, GOOD)
    expected = [list(known.conversations()), list(known.exchanges())]
    run = changed(f"UPDATE {change}")
    gone = 3 if conversations else -1
    assert list(run.conversations()) == [one for one in expected[0] if one[0] != gone]
    gone = 3 if exchanges else -1
    assert list(run.exchanges()) == [one for one in expected[1] if one[0] != gone]
    assert caplog.messages == [f"good.sqlite: run 1: {said}"]
    assert run.store.has_all_conversations(1) == (not conversations)
    assert len(list(run)) == 2 * SAMPLES
    assert not any(line.damaged_samples for line in run.summary)


def test_a_page_is_made_without_what_is_damaged(good, contents, caplog):
    changed(f"UPDATE conversations SET sample = x'00' {OF_CONVERSATION}")
    run = changed(f"UPDATE exchanges SET checksum = 1 {OF_EXCHANGE.replace('3', '5')}")
    report(run, "page.html")
    [pack] = [json.loads(text) for text in contents(Path("page.html")) if text.startswith('{"scores"')]
    assert [at for at, messages in enumerate(pack["messages"]) if messages is None] == [3]
    assert [one[0] and one[0]["0"]["reply"] for one in pack["exchanges"]] == [
        None if at == 5 else str(at) for at in range(SAMPLES)
    ]
    left_out = ("1 damaged judge exchange left out: #5", "1 damaged conversation left out: #3")
    assert caplog.messages == [f"good.sqlite: run 1: {said}" for said in left_out]


def test_what_was_paid_and_cannot_be_read_makes_the_cost_unknown(good):
    run = changed("UPDATE unscored_calls SET calls = '[]' WHERE run = 1")
    line = run.summary["judged"]
    assert (line.tokens, line.cost_usd) == (None, None)
    assert "damaged, so tokens and cost are unknown" in str(run)
    assert not run.store.is_empty(1)


def test_a_damaged_score_that_is_made_again_is_whole_and_what_it_cost_stays_unknown(good):
    changed("UPDATE scores SET calls = '[]' WHERE run = 1 AND sample = 3 AND scorer = 0")
    changed("UPDATE samples SET id = 'x' WHERE run = 1 AND number = 4")
    store = RunStore(GOOD)
    assert [number for number, places in store.scored_by_sample(1, 0, 11).items() if len(places) < 2] == [3]
    assert 4 not in store.scored_by_sample(1, 0, 11)
    recorder = Recorder(store, store.record(1))
    for number in (3, 4):
        one = next(sample for at, sample in store.conversations(1) if at == number)
        recorder.add_sample(number, one)
        for name in ("judged", "plain"):
            recorder.add_row(Row.of(number, one, Score.scored(name, 1)))
    recorder.flush()
    run = Run.stored(1, GOOD)
    assert [row.sample_id for row in run][6:10] == ["s3", "s3", "s4", "s4"]
    assert not any(line.damaged_samples for line in run.summary)
    assert run.summary["judged"].tokens is None
    assert run.summary["plain"].tokens == 0


def test_two_rows_of_one_score_are_refused():
    """As where a page of the file stands in the place of another."""
    write(GOOD, samples=400)
    with closing(sqlite3.connect(GOOD)) as db:
        (size,) = db.execute("PRAGMA page_size").fetchone()
    body = GOOD.read_bytes()
    pages = [body[at : at + size] for at in range(0, len(body), size)]
    leaves = [
        at for at, page in enumerate(pages) if page[0] == 10 and b"why not" in page
    ]  # of an index, as SQLite calls it
    pages[leaves[4]] = pages[leaves[2]]
    GOOD.write_bytes(b"".join(pages))
    with pytest.raises(StoreError, match="the order of the scores of run 1 is damaged"):
        list(Run.stored(1, GOOD))
