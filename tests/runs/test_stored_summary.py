# ruff: noqa: S608 - statements of the words below
"""The numbers that a run's file keeps: they are those of the rows, or they are not used."""

import io
import random
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import fields
from pathlib import Path

import pytest
from rich.console import Console

from judgekit.analysis.gates import check_gates
from judgekit.reports.export import report
from judgekit.reports.summary import show_summary
from judgekit.runs import stored_summary
from judgekit.runs.effort import EffortTotals
from judgekit.runs.recorder import Recorder
from judgekit.runs.results import Run
from judgekit.runs.rows import DAMAGED_ROW, Row, RunRecord, ScorerRecord
from judgekit.runs.schema import SUMMARISED
from judgekit.runs.store import RunStore, now
from judgekit.runs.summary import ScorerSummary, Summary
from judgekit.score import JudgeCall, Score
from judgekit.traces.message import AIMessage, HumanMessage, Usage
from judgekit.traces.sample import Sample

RUNS = Path("runs.sqlite")
LABELS = ("a", "b", "c")
NAMES = ("mean", "binary", "classes", "bleu")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def call(draw: random.Random) -> JudgeCall:
    usage = Usage(input_tokens=draw.randrange(99), output_tokens=5)
    model = draw.choice(["m-1", "m-2", None])
    return JudgeCall(judge="j/m", model=model, prompt="p@1", usage=usage, cost_usd=0.01, cached=draw.random() < 0.3)


def scores(draw: random.Random) -> list[Score]:
    """A score of each scorer, of all kinds."""
    true, predicted = draw.choice(LABELS), draw.choice((*LABELS, ""))
    classes = {"measure": "f1_macro", "true": true, "predicted": predicted}
    bleu = {
        "metric": "bleu", "corpus_signature": "s", "correct": [draw.randrange(9) for _ in range(4)],
        "total": [9, 8, 7, 6], "response_length": 9, "reference_length": draw.randrange(5, 15), "smooth": "exp",
    }  # fmt: skip
    judged = [
        Score.scored("mean", draw.random(), label=draw.choice(LABELS), calls=[call(draw)], warnings=["cut"]),
        Score.skipped("mean", draw.choice(["no reference", "no topics"])),
        Score.failed("mean", "broken", error="RejectedError", calls=[call(draw)]),
        Score.abstained("mean", "who knows", calls=[call(draw)]),
    ]
    return [
        draw.choice(judged),
        Score.scored("binary", float(draw.random() < 0.7)),
        Score.scored("classes", float(true == predicted), details=classes, aggregate="classification"),
        Score.scored("bleu", draw.random(), details=bleu, aggregate="corpus_bleu"),
    ]


def written(rows: Sequence[Sequence[Score]], draw: random.Random, *, grouped: bool = True) -> Run:
    """The run of these scores, open for writing."""
    store = RunStore(RUNS)
    scorers = [ScorerRecord(name=name, signature=name, identity=name, judged=name == "mean") for name in NAMES]
    record = store.begin(RunRecord(started_at=now(), scorers=scorers, samples=len(rows) + 1, count_precision="exactly"))
    recorder = Recorder(store, record)
    for number, found in enumerate(rows):
        messages = [HumanMessage("Why?"), *[AIMessage("So.")] * draw.randrange(1, 4)]
        group = f"task {number // 3}" if grouped and draw.random() < 0.9 else None
        known = {"group": group, "domain": draw.choice(["shop", "bank"]), "label": draw.choice(LABELS)}
        sample = Sample.of(messages, id=f"s{number}", **known)
        recorder.add_sample(number, sample)
        for score in found:
            recorder.add_row(Row.of(number, sample, score))
    recorder.add_ledger(0, "mean", [call(draw)])
    recorder.flush()
    return Run(store, store.change(record.model_copy(update={"ended_at": now()})))


def shown(run: Run) -> str:
    out = io.StringIO()
    show_summary(run.summary, Console(file=out, width=300))
    return f"{run.effort}\n{out.getvalue()}"


def kept(run: Run) -> Run:
    """A run after its numbers were shown and stored, as another process opens it."""
    shown(run)
    run.keep_summary()
    return Run.stored(1, RUNS)


@pytest.fixture
def good() -> Run:
    draw = random.Random(0)  # noqa: S311 - data, no secrets
    return kept(written([scores(draw) for _ in range(30)], draw))


@pytest.mark.parametrize("grouped", [True, False])
@pytest.mark.parametrize("number", [0, 1, 12])
def test_stored_numbers_are_those_of_the_rows(number, grouped):
    draw = random.Random(number)  # noqa: S311
    counted = kept(written([scores(draw) for _ in range(number)], draw, grouped=grouped))
    stored = counted.with_stored_summary()
    assert stored is not None
    assert shown(stored) == shown(counted)
    assert str(stored) == str(counted)
    assert stored.summary["binary"].bootstrap(3) == counted.summary["binary"].bootstrap(3)
    gates = [f"{name}{ending} >= 1" for name in NAMES for ending in ("", ".n", ".coverage")]
    gates += [f"{name}.{ending} >= 1" for name in NAMES[:2] for ending in ("lower", "min")]
    assert check_gates(stored, gates) == check_gates(counted, gates)
    assert list(stored.summary.scorers) == list(NAMES)
    for name in NAMES:
        one, other = stored.summary[name], counted.summary[name]
        assert (one.overall, one.interval, one.trials) == (other.overall, other.interval, other.trials)
        assert (list(one.values), one.groups) == (list(other.values), other.groups)
    assert stored.histograms == counted.histograms
    assert stored.summary.slices.keys() == counted.summary.slices.keys()
    for name, parts in stored.summary.slices.items():
        for value, part in parts.items():
            same = counted.summary.slices[name][value]
            assert [(line.value, line.interval, list(line.values)) for line in part] == [
                (line.value, line.interval, list(line.values)) for line in same
            ]


def test_no_row_is_read_to_show_stored_numbers(good):
    asked: list[str] = []
    good.store._db.set_trace_callback(asked.append)
    stored = good.with_stored_summary()
    assert stored is not None
    assert shown(stored)
    assert asked
    of_rows = [sql for sql in asked if any(f" {table}" in sql for table in SUMMARISED)]
    assert [sql.partition(" FROM")[0] for sql in of_rows] == ["SELECT count(*), ifnull(sum(checksum), 0)"] * 3


def test_a_page_reads_no_rows_but_those_of_the_samples_that_it_lists(good, monkeypatch, tmp_path):
    stored = good.with_stored_summary(checked=True)
    assert stored is not None
    wanted: list[object] = []
    counted_rows = Run.counted_rows
    monkeypatch.setattr(
        Run, "counted_rows", lambda run, *numbers: wanted.extend(numbers) or counted_rows(run, *numbers)
    )
    report(stored, tmp_path / "page.html")
    assert wanted == [set(range(30))]


def changed(sql: str) -> Run:
    """The run after a change that the program did not make."""
    with closing(sqlite3.connect(RUNS)) as db, db:
        assert db.execute(sql).rowcount == 1
    return Run.stored(1, RUNS)


OTHERS = "scorer, status, value, confidence, label, error, aggregate, warnings, calls, explanation, checksum"


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE scores SET value = 0.5 WHERE sample = 3 AND scorer = 1",
        "UPDATE scores SET run = 2 WHERE sample = 3 AND scorer = 1",
        "UPDATE scores SET explanation = '[\"\", {}]' WHERE sample = 3 AND scorer = 1",
        "DELETE FROM scores WHERE sample = 3 AND scorer = 1",
        f"INSERT INTO scores SELECT run, 77, {OTHERS} FROM scores WHERE sample = 3 AND scorer = 1",
        "UPDATE samples SET domain = 'other' WHERE number = 3",
        "DELETE FROM samples WHERE number = 3",
        "DELETE FROM unscored_calls",
        "UPDATE runs SET record = replace(record, 'exactly', 'about')",
    ],
)
def test_stored_numbers_are_not_those_of_rows_that_any_program_changes_since(good, sql):
    assert good.with_stored_summary() is not None
    with closing(sqlite3.connect(RUNS)) as db, db:
        assert db.execute(sql).rowcount == 1
    assert good.with_stored_summary() is None


def test_the_numbers_of_other_runs_stay(good):
    store = RunStore(RUNS)
    record = store.begin(RunRecord(started_at=now(), scorers=good.record.scorers))
    sample = Sample(id="one")
    recorder = Recorder(store, record)
    recorder.add_sample(0, sample)
    recorder.add_row(Row.of(0, sample, Score.scored("mean", 1)))
    recorder.flush()
    Run(store, record).keep_summary()
    assert [one.stored_summary(run) is not None for one in (good.store,) for run in (1, 2)] == [True, True]
    store.remove([1])
    assert [store.stored_summary(run) is not None for run in (1, 2)] == [False, True]


def test_another_version_does_not_use_them(good, monkeypatch):
    assert good.with_stored_summary() is not None
    monkeypatch.setattr(stored_summary, "SUMMARY_VERSION", stored_summary.SUMMARY_VERSION + 1)
    assert good.with_stored_summary() is None
    monkeypatch.undo()
    monkeypatch.setattr(stored_summary, "version", lambda _: "0.0.1")
    assert good.with_stored_summary() is None


@pytest.mark.parametrize("body", ["x''", "x'00'", "summary", "zeroblob(9)"])
def test_damaged_ones_are_not_used(good, body):
    assert changed(f"UPDATE summaries SET summary = {body}, checksum = checksum + 1").with_stored_summary() is None


def test_rows_that_change_while_they_are_counted_are_not_those_that_were_counted():
    draw = random.Random(1)  # noqa: S311
    run = written([scores(draw) for _ in range(5)], draw)
    shown(run)
    changed("DELETE FROM scores WHERE sample = 3 AND scorer = 1")
    run.keep_summary()
    assert run.store.stored_summary(1) is None


def test_a_record_that_changes_while_rows_are_counted_is_not_that_of_the_numbers():
    draw = random.Random(1)  # noqa: S311
    run = written([scores(draw) for _ in range(5)], draw)
    shown(run)
    run.store.change(run.record.model_copy(update={"samples": 50}))
    run.keep_summary()
    assert run.store.stored_summary(1) is None


@pytest.mark.parametrize("number", [1, 30], ids=["one of each slice", "several"])
def test_stored_numbers_can_be_merged_with_others(number):
    def numbers(summary):
        parts = [summary, *(part for values in summary._slices.values() for part in (values or {}).values())]
        return [(line.value, line.interval, list(line.values)) for part in parts for line in part]

    draw = random.Random(0)  # noqa: S311
    counted = kept(written([scores(draw) for _ in range(number)], draw))
    other = written([scores(draw) for _ in range(9)], draw).summary
    stored = counted.with_stored_summary()
    assert stored is not None
    assert numbers(Summary.merged([stored.summary, other])) == numbers(Summary.merged([counted.summary, other]))
    assert numbers(Summary.merged([other, stored.summary])) == numbers(Summary.merged([other, counted.summary]))


def test_damaged_rows_are_named_each_time():
    draw = random.Random(1)  # noqa: S311
    run = written([scores(draw) for _ in range(5)], draw)
    changed("UPDATE scores SET value = 0.123 WHERE sample = 3 AND scorer = 1")
    assert "1 damaged row left out" in shown(kept(run))
    assert run.store.stored_summary(1) is None


def test_the_code_of_an_aggregate_of_one_s_own_may_change_so_its_numbers_are_not_stored():
    draw = random.Random(1)  # noqa: S311
    mine = [Score.scored("mean", 1, aggregate="statistics:fmean")]
    run = kept(written([mine] * 3, draw))
    assert run.with_stored_summary() is None


@pytest.mark.parametrize("path", [None, RUNS])
def test_a_run_in_memory_or_opened_for_reading_stores_none(path, run_of):
    run = run_of(Row(index=0, sample_id="a", score=Score.scored("a", 1)), path=path)
    shown(run)
    (run if path is None else Run.stored(1, path)).keep_summary()
    assert run.store.stored_summary(1) is None


def rot(path: Path, places: Sequence[bytes]) -> None:
    """Changes a byte of each of these texts in the file, as a bad disk does."""
    body = bytearray(path.read_bytes())
    for text in places:
        assert body.count(text) == 1
        body[body.index(text)] ^= 1
    path.write_bytes(body)


@pytest.mark.parametrize("kind", ["reason", "invalid UTF-8", "sample"])
def test_a_row_that_rots_changes_no_stored_number_and_is_named_by_whoever_reads_it(kind):
    draw = random.Random(1)  # noqa: S311
    rows = [scores(draw) for _ in range(5)]
    rows[3][1] = Score.scored("binary", 1, reason="because of this")
    run = kept(written(rows, draw))
    before = shown(run)
    del run
    with closing(sqlite3.connect(RUNS)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    if kind == "invalid UTF-8":
        body = RUNS.read_bytes()
        RUNS.write_bytes(body.replace(b"because of this", b"because \xff\xff this"))
    else:
        rot(RUNS, [b"because of this" if kind == "reason" else b"s3s3"])
    run = Run.stored(1, RUNS)
    stored = run.with_stored_summary()
    assert stored is not None
    assert shown(stored) == before
    assert run.with_stored_summary(checked=True) is None
    assert "1 damaged row left out" in shown(run)
    assert [row.index for row in run if row.score.error == DAMAGED_ROW][:1] == [3]


def test_stored_numbers_that_are_checked_are_those_of_intact_rows(good):
    stored = good.with_stored_summary(checked=True)
    assert stored is not None
    assert shown(stored) == shown(good)


def test_a_page_of_rows_in_the_place_of_another_is_found():
    draw = random.Random(1)  # noqa: S311
    run = kept(written([[Score.scored("mean", 1, reason="why not " * 40)] for _ in range(400)], draw))
    with closing(sqlite3.connect(RUNS)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (size,) = db.execute("PRAGMA page_size").fetchone()
    assert run.with_stored_summary() is not None
    body = RUNS.read_bytes()
    pages = [body[at : at + size] for at in range(0, len(body), size)]
    leaves = [at for at, page in enumerate(pages) if page[0] == 10 and b"why not" in page]
    full = [at for at in leaves if pages[at][3:5] == pages[leaves[2]][3:5]]  # with as many rows
    pages[full[1]] = pages[full[0]]
    RUNS.write_bytes(b"".join(pages))
    assert Run.stored(1, RUNS).with_stored_summary() is None


def test_the_version_of_summaries_is_raised_when_their_numbers_or_fields_change():
    """If this fails, raise ``SUMMARY_VERSION`` too, so that no file shows numbers of the code before."""
    draw = random.Random(5)  # noqa: S311
    run = written([scores(draw) for _ in range(9)], draw)
    lines = [(one.value, one.interval, one.tokens, one.trials) for one in run.summary]
    kinds = (ScorerSummary, Summary, EffortTotals)
    names = " ".join(sorted(one.name for kind in kinds for one in fields(kind)))
    assert (stored_summary.SUMMARY_VERSION, names, rounded([*lines, run.effort.statistics])) == (2, FIELDS, NUMBERS)


def rounded(found: object) -> object:
    if isinstance(found, float):
        return round(found, 6)
    return [rounded(one) for one in found] if isinstance(found, list | tuple) else found


FIELDS = (
    "_drawn _graded _interval _overall _slices _statistics _trials answers audited cached conversations "
    "cost_usd counts damaged_samples errors labels lost_calls missing price_lists qualifier reasons "
    "requests scorer scorers signature tokens tool_errors tool_results unmerged_slices unscored_requests "
    "warnings with_repeated_calls with_warnings"
)
NUMBERS = [
    [0.414678, None, 408, []],
    [
        0.666667,
        [0.319521, 0.894944, "modified Wilson, 6 groups"],
        0,
        [
            [
                1,
                [0.694444, [0.285467, 0.928207, "modified Wilson"], 6, 0],
                [0.694444, [0.285467, 0.928207, "modified Wilson"], 6, 0],
            ],
            [2, [1.0, [0.34238, 1.0, "Wilson"], 2, 4], [0.166667, [0.00044, 0.989108, "modified Wilson"], 2, 4]],
            [3, [1.0, [0.206549, 1.0, "Wilson"], 1, 5], [0.0, [0.0, 0.793451, "Wilson"], 1, 5]],
        ],
    ],
    [
        0.5,
        None,
        0,
        [
            [
                1,
                [0.472222, [0.147266, 0.822555, "modified Wilson"], 6, 0],
                [0.472222, [0.147266, 0.822555, "modified Wilson"], 6, 0],
            ],
            [2, [0.833333, [0.010892, 0.99956, "modified Wilson"], 2, 4], [0.0, [0.0, 0.65762, "Wilson"], 2, 4]],
            [3, [1.0, [0.206549, 1.0, "Wilson"], 1, 5], [0.0, [0.0, 0.793451, "Wilson"], 1, 5]],
        ],
    ],
    [0.476766, None, 0, []],
    [["agent messages", 2.222222, 2.0, 9], ["tool calls", 0.0, 0.0, 9]],
]
