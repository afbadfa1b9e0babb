"""``judgekit runs``."""

import re
import sqlite3
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from judgekit import Row, Sample, Score, ToolCallF1, run
from judgekit.errors import StoreError
from judgekit.runs.recorder import Recorder
from judgekit.runs.results import Run
from judgekit.runs.rows import Input, RunDescription, RunRecord, ScorerResult
from judgekit.runs.schema import KEYS, LabelRow, checksum
from judgekit.runs.store import DEFAULT_RUNS_PATH, RunStore
from judgekit.scoring import scorer

BEGAN = datetime(2026, 3, 1, 22, 30, 15, tzinfo=UTC)
NASTY = "\x1b[2J\u202e[red]x\n\x9b1m"


@scorer
async def says(sample: Sample) -> bool:
    """1 if the sample is to succeed."""
    return sample.id != "bad"


@pytest.fixture
def _five_hours_east(monkeypatch):
    monkeypatch.setenv("TZ", "Etc/GMT-5")
    time.tzset()
    yield
    monkeypatch.delenv("TZ")
    time.tzset()


def began(**changes: object) -> None:
    """A run of which nothing was scored."""
    RunStore(DEFAULT_RUNS_PATH).begin(RunRecord.model_validate({"started_at": BEGAN, **changes}))


def lines(out: str) -> list[list[str]]:
    """The cells of a table, below its header."""
    found = [line.strip() for line in out.splitlines()]
    rule = next(index for index, line in enumerate(found) if line.startswith("─"))
    return [re.split(r"\s{2,}", line) for line in found[rule + 1 :] if line]


@pytest.mark.usefixtures("_five_hours_east")
def test_each_run_has_a_line_the_newest_last(cli):
    run([Sample(id=str(number)) for number in range(1_200)], [says], store=DEFAULT_RUNS_PATH)
    made = RunStore(DEFAULT_RUNS_PATH).record(1)
    inputs = [Input(path=f"/data/{name}.jsonl", sha256="0" * 64, size=1, modified_at=1.0) for name in "abc"]
    changes = {
        "started_at": BEGAN,
        "ended_at": BEGAN + timedelta(hours=30, seconds=5),
        "worked_seconds": None,
        "inputs": tuple(inputs),
    }
    RunStore(DEFAULT_RUNS_PATH).change(made.model_copy(update=changes))
    began(stop_reason="the budget is spent", ended_at=BEGAN, options={"file": "-"})
    began(scorers=made.scorers)
    assert lines(cli("runs").out) == [
        [
            "1",
            "2026-03-02 03:30",
            "says 1.00 [.997, 1.00] of a.jsonl, b.jsonl, and 1 more",
            "1 day, 6:00:05",
            "1,200",
            "1,200",
            "0",
        ],
        ["2", "2026-03-02 03:30", "stopped: nothing of standard input", "0:00:00", "at least 0", "0", "0"],
        ["3", "2026-03-02 03:30", "interrupted: says of samples in Python", "at least 0", "0", "0"],
    ]


def test_runs_have_the_names_tags_and_notes_that_people_give_them(cli, conversations):
    words = ("--name", "Baseline", "--tag", "gpt-5", "--tag", "nightly", "--note", "before the new prompt")
    cli("run", conversations(1), "--scorer", "tool_call_f1", *words)
    cli("run", conversations(1), "--scorer", "tool_call_f1")
    (heads,) = [re.split(r"\s{2,}", line.strip()) for line in cli("runs").out.splitlines() if " started" in line]
    assert heads[:3] == ["run", "name", "started"]
    assert lines(cli("runs").out)[0][:2] == ["1", "Baseline #gpt-5 #nightly"]
    cli("runs", 1, "--name", "", "--tag", "")
    shown = cli("runs", 1).out
    assert "name:" not in shown
    assert "tags:" not in shown
    assert "\nnote: before the new prompt\n" in shown
    code, _, err = cli("runs", 1, "--tag", "two words")
    assert (code, err) == (2, "judgekit: a tag has 1 to 50 characters and no spaces, found 'two words'\n")
    assert cli("runs", "--name", "x").code == 2


def test_what_is_typed_while_a_run_is_scored_outlasts_it():
    async def typing(sample):
        RunStore(DEFAULT_RUNS_PATH).describe(1, RunDescription("Typed", "", ("now",)))
        assert Run.stored().state == "running"
        return 1.0

    scored = run([Sample(id="a")], [scorer(name="typing", version="1")(typing)], store=DEFAULT_RUNS_PATH)
    assert (scored.description, scored.state) == (("Typed", "", ("now",)), "ended")


def test_a_run_that_has_said_nothing_for_a_minute_was_interrupted():
    store = RunStore(DEFAULT_RUNS_PATH)
    record = store.begin(RunRecord(started_at=BEGAN))
    assert Run(store, record).state == "interrupted"
    for seconds, state in ((30, "running"), (90, "interrupted")):
        row = (record.number, int(time.time()) - seconds)
        with store.transaction() as db:
            db.execute("INSERT OR REPLACE INTO stamps VALUES (?, ?, ?)", (*row, checksum(row)))
        assert Run(store, record).state == state
    assert Run(store, store.change(record.model_copy(update={"ended_at": BEGAN}))).state == "ended"


def test_a_finished_run_keeps_a_result_for_each_scorer_until_its_rows_change(cli, conversations, monkeypatch):
    cli("run", conversations(3), "--scorer", "tool_call_f1")
    store, line = RunStore(DEFAULT_RUNS_PATH), Run.stored().summary["tool_call_f1"]
    result = ScorerResult(3, 0, 3, line.value, line.interval.low, line.interval.high)
    assert store.results(1) == [result]
    with monkeypatch.context() as patched:
        patched.setattr(RunStore, "counts", lambda *_: pytest.fail("the rows are counted"))
        assert "tool_call_f1 " in cli("runs").out
    with store.transaction() as db:
        db.execute("UPDATE results SET mean = 0.123")
    assert store.results(1) == []
    cli("score", 1, "--scorer", "tool_call_accuracy")
    assert [one.n for one in store.results(1)] == [3, 3]
    recorder = Recorder(store, store.record(1))
    recorder.add_row(Row(index=1, sample_id="s1", score=Score.scored("tool_call_f1", 0)))
    recorder.flush()
    assert store.results(1) == []


def test_one_run_is_shown_with_what_it_was_told_what_it_read_and_its_summary(cli, conversations):
    path = conversations(4)
    told = cli("run", path, "--scorer", "tool_call_f1:as=f1", "--limit", 3)
    shown = cli("runs", "last")
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.endswith(told.out)
    record = Run.stored().record
    head = shown.out.removesuffix(told.out).splitlines()
    assert head[0] == "run 1: finished"
    assert head[2:5] == ["file: samples.jsonl", 'scorers: [{"name": "tool_call_f1", "as": "f1"}]', "limit: 3"]
    cells = [line.split() for line in head]
    assert ["samples.jsonl", record.inputs[0].sha256] in cells
    assert ["f1", record.scorers[0].signature] in cells


def test_what_came_from_outside_steers_no_terminal(cli):
    hostile = Input(path=f"/{NASTY}.jsonl", sha256="0" * 64, size=1, modified_at=1.0)
    record = {
        "stop_reason": NASTY,
        "ended_at": BEGAN,
        "notes": (NASTY,),
        "inputs": (hostile,),
        "options": {"file": NASTY},
    }
    began(**record, scorers=RunStore().begin(RunRecord(started_at=BEGAN)).scorers)
    for words in ((), (1,)):
        shown = cli("runs", *words).out
        assert {char for char in shown if not char.isprintable()} == {"\n"}
        assert shown.count(r"\x1b[2J\u202e[red]x") >= 1


@pytest.mark.parametrize("ended", [True, False])
def test_what_is_removed_is_gone_for_good_and_the_rest_is_there(cli, ended):
    """Its words are nowhere in the file, nor in SQLite's log, and its number is not given again."""
    quoting = scorer(name="s")(lambda sample: (0.5, f"{sample.domain} reason"))
    for word in ("kept", "secret"):
        samples = [Sample(id=f"{word} id {number}", domain=word) for number in range(200)]
        run(samples, [quoting], store=DEFAULT_RUNS_PATH)
    store = RunStore(DEFAULT_RUNS_PATH)
    if not ended:
        store.change(store.record(2).model_copy(update={"ended_at": None, "options": {"file": "secret.jsonl"}}))
    recorder = Recorder(store, store.record(2))  # what is scored again leaves its old words in the file
    for row in Run.stored(2).rows():
        recorder.add_row(row)
    recorder.flush()
    del store, recorder

    def written() -> bytes:
        return b"".join(file.read_bytes() for file in DEFAULT_RUNS_PATH.parent.glob("runs.sqlite*"))

    before = written()
    assert b"secret id" in before
    assert b"secret reason" in before
    ended = cli("runs", "--yes", "--remove", 2)
    assert (ended.code, ended.err) == (0, "")
    assert ".judgekit/runs.sqlite: deleted run 2" in ended.out
    assert b"secret" not in written()
    assert len(written()) < len(before)
    assert [(row.sample_id, row.score.reason) for row in Run.stored(1)][:1] == [("kept id 0", "kept reason")]
    assert [line[0] for line in lines(cli("runs").out)] == ["1"]
    began()
    assert [line[0] for line in lines(cli("runs").out)] == ["1", "3"]
    with closing(sqlite3.connect(DEFAULT_RUNS_PATH)) as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE sql LIKE '%run INTEGER%'")]
        assert {*tables} == {*KEYS}
        found = (db.execute(f"SELECT count(*) FROM {name} WHERE run <> 1").fetchone() for name in tables)  # noqa: S608
        assert set(found) == {(0,)}
    db.close()


@pytest.mark.parametrize(
    ("named", "left", "said"),
    [
        (("last", 3), [1, 2], "deleted runs 4, 3"),
        (("last", 4, "last"), [1, 2, 3], "deleted run 4"),  # the same run, and not the last of what is left
        ((2, 2), [1, 3, 4], "deleted run 2"),
    ],
)
def test_runs_to_be_removed_are_named_by_their_number_or_as_the_last(cli, named, left, said):
    for _ in range(4):
        began()
    ended = cli("runs", "--yes", *(word for run in named for word in ("--remove", run)))
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith(f".judgekit/runs.sqlite: {said}; ")
    assert RunStore(DEFAULT_RUNS_PATH).numbers() == left


def test_while_another_program_reads_it_is_said_that_words_may_be_left():
    for _ in range(2):
        run([Sample(id="a")], [says], store=DEFAULT_RUNS_PATH)
    with closing(sqlite3.connect(DEFAULT_RUNS_PATH, isolation_level=None)) as reading:
        reading.execute("BEGIN")
        reading.execute("SELECT * FROM samples").fetchone()
        store = RunStore(DEFAULT_RUNS_PATH)
        store._db.execute("PRAGMA busy_timeout = 0")
        with pytest.raises(StoreError, match=r"deleted, but parts of their text may be in .*runs\.sqlite-wal until"):
            store.remove([1])
    reading.close()
    assert store.numbers() == [2]


def test_what_is_not_there_is_neither_shown_nor_removed(cli):
    began()
    for words, said in (
        (("--remove", 1, "--remove", 7), "contains no run 7"),
        (("--remove", 1, "--remove", "first"), "'first': expected the number of a run, or last"),
        (("--remove", "last", "--remove", 7), "contains no run 7"),
        (("--remove", -1), "'-1': expected the number of a run, or last"),
        (("1", "--remove", 1), "either show a run or use --remove"),
        (("7",), "contains no run 7"),
        (("x",), "expected the number of a run, or last"),
        (("--store", "nowhere.sqlite"), "nowhere.sqlite: there are no runs yet"),
        (("--store", "nowhere.sqlite", "--remove", 1), "nowhere.sqlite: there are no runs yet"),
    ):
        ended = cli("runs", *words)
        assert (ended.code, ended.out, said in ended.err) == (2, "", True), words
    assert len(RunStore(DEFAULT_RUNS_PATH).numbers()) == 1
    assert list(Path().iterdir()) == [Path(".judgekit")]


def test_a_file_without_runs_says_so(cli):
    RunStore(DEFAULT_RUNS_PATH)
    assert cli("runs", "--yes", "--remove", "last").code == 2
    assert cli("runs").out == ".judgekit/runs.sqlite: contains no runs\n"


def test_a_run_is_written_to_files_and_its_lowest_scores_are_shown(cli):
    run([Sample(id="bad"), Sample(id="good")], [says], store=DEFAULT_RUNS_PATH)
    ended = cli("runs", "last", "--show", 1, "-o", "rows.jsonl", "-o", "page.html")
    assert ended.code == 0
    assert "says, lowest 1 score:" in ended.out
    assert [Row.model_validate_json(line) for line in Path("rows.jsonl").read_text().splitlines()] == list(Run.stored())
    assert Path("page.html").read_text().startswith("<!doctype html>")


def test_files_that_are_written_later_have_the_gates_too(cli, conversations):
    Path("judgekit.toml").write_text('gate = ["tool_call_f1 >= 0"]\nmin_coverage = 1')
    path = conversations(3)
    with path.open("a") as file:
        file.write(Sample.of([], id="nothing is expected").model_dump_json() + "\n")
    kinds = ("xml", "md", "html")
    asked = [word for kind in kinds for word in ("-o", f"at_once.{kind}")]
    assert cli("run", path, "--scorer", "tool_call_f1", "--gate", "tool_call_f1.min >= 0", *asked).code == 1
    Path("judgekit.toml").unlink()
    assert cli("runs", "last", *(word.replace("at_once", "later") for word in asked)).code == 0
    for kind in kinds:
        at_once, later = (Path(f"{when}.{kind}").read_text() for when in ("at_once", "later"))
        assert at_once.count("min_coverage") > 1
        assert ".min " in at_once
        assert later == at_once


def test_intervals_are_those_of_the_bootstrap_where_it_is_asked_for(cli):
    found = run([Sample(id="bad" if number % 3 else "good") for number in range(30)], [says], store=DEFAULT_RUNS_PATH)
    usual, drawn = found.summary["says"].interval, found.summary["says"].bootstrap(7)
    for words, interval in (((), usual), (("--bootstrap", "--seed", 7), drawn)):
        out = cli("runs", 1, *words).out
        assert f"{interval.low:.3f} to {interval.high:.3f}" in out
    assert (usual.low, usual.high) != (drawn.low, drawn.high)


def test_what_is_to_be_shown_or_written_of_a_run_needs_its_name(cli):
    for words in (("-o", "x.html"), ("--show", "1"), ("--bootstrap",)):
        said = "judgekit: name the run to show, write or describe: judgekit runs last -o report.html\n"
        assert cli("runs", *words) == (2, "", said)


def test_options_of_a_run_of_objects_leave_them_out(cli, conversations):
    path = conversations(1)
    run(path, [ToolCallF1()], store=DEFAULT_RUNS_PATH)
    run(path, [ToolCallF1(), "tool_call_accuracy"], store=DEFAULT_RUNS_PATH)
    assert "scorers:" not in cli("runs", 1).out
    assert 'scorers: [{"name": "tool_call_accuracy"}]' in cli("runs", 2).out


def test_labels_go_with_a_run_only_if_that_is_said(cli):
    began()
    began()
    store = RunStore(DEFAULT_RUNS_PATH)
    with store.transaction():
        store.add_labels(
            LabelRow(1, 1, number % 3, "fine", name, value, None, "", None, None, None, "human", None)
            for number, name in enumerate(["Ana", "Ana", None, "Ana"])
            for value in ('"yes"', None)
        )
    assert "note: 3 labels of fine by Ana, unnamed people on run 1\n" in cli("runs", 1).out
    ended = cli("runs", "--yes", "--remove", 2, "--remove", 1)
    assert (ended.code, store.numbers()) == (2, [1, 2])
    of = "3 labels of fine by Ana, unnamed people on run 1"
    said = f"nothing is deleted, since human labels would be too: {of}; --with-labels deletes them"
    assert said in " ".join(ended.err.split())
    ended = cli("runs", "--yes", "--remove", 2, "--remove", 1, "--with-labels")
    assert (ended.code, store.numbers(), store.labeled_runs()) == (0, [], [])
    assert f"deleted runs 2, 1 with {of}; the judges" in " ".join(ended.out.split())
