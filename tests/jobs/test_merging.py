"""Runs in shards: merged, they are the run that one process would have made; and what cannot be merged."""

import json
import re
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from judgekit import PromptScorer, Run, ToolCallF1, audit, check_gates, compare, load_prompt, read_labels, scorer
from judgekit.errors import ConfigError, StoreError, TraceError
from judgekit.jobs.api import merge_runs, plan, resume, run
from judgekit.jobs.options import RunOptions
from judgekit.judges.scripted import ScriptedJudge
from judgekit.runs.problems import ReadingProblems
from judgekit.runs.recorder import Recorder
from judgekit.runs.store import RunStore
from judgekit.traces.message import AIMessage, HumanMessage, ToolCall
from judgekit.traces.sample import Sample

SCORERS = ["tool_call_f1", "classification:measure=f1_macro", "bleu"]
ONE = ["tool_call_f1"]
WORDS = ("refund", "order", "late", "sorry", "done")


def said(number: int, count: int = 4) -> str:
    return " ".join(WORDS[(number * 7 + place * place) % len(WORDS)] for place in range(count + number % 3))


def sample(number: int, **more: object) -> Sample:
    """Trials of tasks, with labels, in several domains; some lack what a scorer compares with."""
    messages = [
        HumanMessage(f"Hi {number}"),
        AIMessage(tool_calls=[ToolCall(f"tool_{number % 3}", {"x": number % 2})]),
        AIMessage(said(number)),
    ]
    known: dict[str, object] = {
        "id": f"s{number}",
        "group": f"task {number // 4}" if number % 11 else None,
        "domain": ("shop", "bank")[number % 2],
        "reference": said(number + number % 2),
        "reference_tool_calls": [ToolCall("tool_0", {"x": 0})] if number % 5 else None,
        "label": WORDS[number % 3],
        "prediction": WORDS[number % 4] if number % 7 else "",
        **more,
    }
    return Sample.of(messages, **known)


def lines(path: str, texts: Sequence[str]) -> str:
    Path(path).parent.mkdir(exist_ok=True)
    Path(path).write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return path


def own(path: str = "own.jsonl", count: int = 60) -> str:
    return lines(path, [sample(number).model_dump_json() for number in range(count)])


def broken() -> str:
    texts = Path(own()).read_text().splitlines()
    for number in (3, 30, 59):
        texts[number] = "{oops"
    return lines("broken.jsonl", texts)


def repeated() -> str:
    """Ids that samples of different shards share."""
    return lines("repeated.jsonl", [sample(number, id=f"s{number % 50}").model_dump_json() for number in range(60)])


def chat() -> str:
    records = [
        {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": said(number)}], "group": f"g{number // 3}"}
        for number in range(40)
    ]  # fmt: skip
    return lines("chat.jsonl", [json.dumps(one) for one in records])


def table() -> str:
    rows = [f'{number},"{said(number)}","{said(number + 1)}"' for number in range(20)]
    return lines("table.csv", ["id,response,reference", *rows])


def folder() -> str:
    own("all/a.jsonl", 20)
    shutil.copy(chat(), "all/b.jsonl")
    Path("all/c.json").write_text("{oops")
    shutil.copy(table(), "all/d.csv")
    return "all"


FILES: dict[str, Callable[[], str]] = {
    "broken records": broken,
    "repeated ids": repeated,
    "a folder": folder,
}


def shard_store(number: int) -> str:
    return f"shard-{number}.sqlite"


def in_shards(
    path: str, count: int, run_id: str = "x", scorers: Sequence[str] = SCORERS, **options: object
) -> list[str]:
    """The files of a run in shards."""
    for number in range(1, count + 1):
        run(path, scorers, shard=f"{number}/{count}", run_id=run_id, store=shard_store(number), **options)
    return [shard_store(number) for number in range(1, count + 1)]


def without_times(run: Run) -> list:
    """The rows of a run, but for what its calls took."""
    return [row.model_copy(update={"score": row.score.model_copy(update={"calls": ()})}) for row in run]


def numbers(run: Run) -> dict[str, object]:
    """The numbers of a run by scorer, with all that its summary says."""
    return {
        line.scorer: (line.value, line.interval, line.trials, dict(line.counts), dict(line.labels), str(line), list(line.notes()))
        for line in run.summary
    }  # fmt: skip


def assert_equal(one: Run, other: Run) -> None:
    assert list(one) == list(other)
    assert numbers(one) == numbers(other)
    mean, other_mean = one.summary["tool_call_f1"], other.summary["tool_call_f1"]
    assert (mean.values, mean.units) == (other_mean.values, other_mean.units)  # in order, as a bootstrap draws them
    assert {
        name: {value: str(part) for value, part in values.items()} for name, values in one.summary.slices.items()
    } == {name: {value: str(part) for value, part in values.items()} for name, values in other.summary.slices.items()}
    assert str(one.usage) == str(other.usage)
    assert (one.samples, one.duplicate_ids, one.recordings) == (other.samples, other.duplicate_ids, other.recordings)
    assert list(one.conversations()) == list(other.conversations())
    assert list(one.scored_samples()) == list(other.scored_samples())  # with the hashes of samples
    assert (one.record.notes, one.record.unread_records) == (other.record.notes, other.record.unread_records)
    assert (one.stop_reason, one.record.read_to_end) == (other.stop_reason, other.record.read_to_end)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("kind", "count"), [*((kind, 3) for kind in FILES), ("few", 1), ("few", 7)])
def test_a_run_in_shards_is_the_run_of_one_process(kind, count):
    """One shard, three, more than the folder has files, and more than there are samples."""
    path = own(count=6) if kind == "few" else FILES[kind]()
    merged = merge_runs(in_shards(path, count), store="merged.sqlite")
    assert_equal(merged, run(path, SCORERS, store="whole.sqlite"))
    assert merged.record.id == "x"
    assert RunOptions.from_record(merged.record).shard is None


def test_any_order_of_files_and_one_file_for_all_shards():
    path = own()
    for number in (3, 1, 2):
        run(path, SCORERS, shard=f"{number}/3", run_id="x", store="all.sqlite")
    merged = merge_runs(["all.sqlite"], store="all.sqlite")
    assert_equal(merged, merge_runs(reversed(in_shards(path, 3)), store="merged.sqlite"))
    assert merged.number == 4


def test_a_run_without_text_is_merged_and_says_what_cannot_be():
    """Predictions that are no label are hashed with a key of each process, so one may count as several classes."""
    Path("judgekit.toml").write_text("store_text = false\n")
    path = lines(
        "own.jsonl", [sample(number, prediction=f"other {number % 2}").model_dump_json() for number in range(30)]
    )
    merged = merge_runs(in_shards(path, 3), store="merged.sqlite")
    whole = run(path, SCORERS, store="whole.sqlite")
    names = [one.name for one in whole.scorers if one.name != "classification"]
    assert {name: numbers(merged)[name] for name in names} == {name: numbers(whole)[name] for name in names}
    assert any("3 sessions without text" in note for note in merged.summary["classification"].notes())
    assert not any("sessions without text" in note for note in whole.summary["classification"].notes())


def test_a_merged_run_is_compared_gated_extended_and_planned_like_any_other(monkeypatch):
    monkeypatch.setattr("judgekit.analysis.difference._DRAWS", 20)
    path = own()
    merged = merge_runs(in_shards(path, 3), store="merged.sqlite")
    whole = run(path, SCORERS, store="whole.sqlite")
    gates = ["tool_call_f1.lower >= 0.2", "bleu >= 0.9"]
    assert str(check_gates(merged, gates)) == str(check_gates(whole, gates))
    assert [one.difference for one in compare(whole, merged)] == [0.0] * len(SCORERS)
    again = resume(merged)
    assert_equal(again, whole)
    assert plan(path, SCORERS).requests == 0


def test_the_sample_is_the_same_in_shards_and_in_one_process_and_depends_on_the_seed():
    path = own(count=100)
    merged = merge_runs(in_shards(path, 3, sample=0.2), store="merged.sqlite")
    whole = run(path, SCORERS, store="whole.sqlite", sample=0.2)
    assert_equal(merged, whole)
    drawn = {row.sample_id for row in whole}
    assert 8 < len(drawn) < 32
    reversed_path = lines("other.jsonl", reversed(Path(path).read_text().splitlines()))
    assert {row.sample_id for row in run(reversed_path, SCORERS, sample=0.2)} == drawn
    assert drawn < {row.sample_id for row in run(path, SCORERS, sample=0.5)}
    seeded = list(RunOptions(file=path, sample=0.2, seed=1).samples(ReadingProblems()))
    assert {one.id for _, one in seeded} != drawn


def test_options_that_do_not_go_together_are_refused_before_anything_is_stored():
    """More of them by the command line, which has the same options."""
    for options, found in (
        ({"shard": "", "run_id": None}, "give --shard and --run-id together"),
        ({"shard": "1/2", "run_id": "a b"}, "--run-id 'a b': expected up to 100 letters"),
        ({"sample": float("nan")}, "--sample nan: expected a share above 0"),
        ({"data": [sample(1)], "shard": "1/2", "run_id": "x"}, "need the path of a file as data"),
        ({"data": [sample(1)], "sample": 0.5}, "need the path of a file as data"),
    ):
        with pytest.raises(ConfigError, match=re.escape(found)):
            run(**{"data": own(), "scorers": SCORERS, "store": "store.sqlite", **options})
        assert not Path("store.sqlite").exists()


def test_the_same_command_resumes_its_shard_and_others_are_told_apart():
    path = own()
    first = run(path, ONE, shard="1/2", run_id="x", store="store.sqlite")
    again = run(path, ONE, shard="1/2", run_id="x", store="store.sqlite")
    assert (again.number, list(again)) == (1, list(first))
    assert run(path, ONE, shard="2/2", run_id="x", store="store.sqlite").number == 2
    assert run(path, ONE, shard="1/2", run_id="y", store="store.sqlite").number == 3
    with pytest.raises(ConfigError, match=r"has shard 1/2 of run x with other options: sample was None and is 0\.5"):
        run(path, ONE, shard="1/2", run_id="x", store="store.sqlite", sample=0.5)
    own(count=61)
    with pytest.raises(ConfigError, match=r"own\.jsonl changed"):
        run(path, ONE, shard="1/2", run_id="x", store="store.sqlite")


def test_an_unfinished_shard_makes_an_unfinished_run_that_can_be_resumed():
    path = own()
    stores = in_shards(path, 3)
    lose(stores[1], "DELETE FROM scores WHERE sample % 3 = 0", ended_at=None)
    lose(
        stores[2],
        "DELETE FROM scores WHERE sample > 55; DELETE FROM samples WHERE number > 55",
        stop_reason="the budget is spent",
    )
    merged = merge_runs(stores, store="merged.sqlite")
    assert merged.stop_reason == "shard 2/3: running or interrupted; shard 3/3: the budget is spent"
    assert merged.summary["bleu"].missing > 0
    resumed = resume(merged)
    assert_equal(resumed, run(path, SCORERS, store="whole.sqlite"))


def lose(store: str, sql: str, **record: object) -> None:
    """Lose rows of a run, as if it had not made them, and change its record."""
    opened = RunStore(store)
    opened.change(opened.record().model_copy(update=record))
    with closing(sqlite3.connect(store)) as db, db:
        db.executescript(sql)


def refused(stores: Sequence[str], found: str, kind: type[Exception] = ConfigError) -> None:
    with pytest.raises(kind, match=re.escape(found)):
        merge_runs(stores, store="merged.sqlite")
    assert not Path("merged.sqlite").exists() or RunStore("merged.sqlite").numbers() == []


def test_a_missing_shard_is_named():
    stores = in_shards(own(), 4, scorers=ONE)
    refused([stores[0], stores[3]], "2 shards of 4 missing: 2, 3; score them, and name their files too")


def test_a_doubled_shard_is_named():
    stores = in_shards(own(), 3, scorers=ONE)
    shutil.copy(stores[1], "copy.sqlite")
    refused([*stores, "copy.sqlite"], "shard 2/3 is there twice: run 1 in shard-2.sqlite and run 1 in copy.sqlite")
    refused([*stores, stores[2]], "shard 3/3 is there twice")


def test_shards_of_other_runs_and_splits_are_refused():
    path = own()
    stores = in_shards(path, 2, scorers=ONE)
    run(path, ONE, shard="2/2", run_id="y", store="y.sqlite")
    refused(
        [stores[0], "y.sqlite"], "shards of several runs: x (in shard-1.sqlite), y (in y.sqlite); merge those of one"
    )
    run(path, ONE, shard="2/3", run_id="x", store="z.sqlite")
    refused([stores[0], "z.sqlite"], "different numbers of shards: 1/2 (in shard-1.sqlite), 2/3 (in z.sqlite)")
    run(path, ONE, store="whole.sqlite")
    refused([stores[0], "whole.sqlite"], "whole.sqlite: contains no shard of a run")
    refused([], "no files")
    refused([stores[0], "none.sqlite"], "none.sqlite: there are no runs yet", StoreError)


def test_other_scorers_options_and_recordings_are_refused():
    path = own()
    before = f"shard 2/2 in other.sqlite is not of the same run as shard 1/2 in {shard_store(1)}: "

    def other(found: str, scorers: Sequence[str] = SCORERS, **options: object) -> None:
        run(path, scorers, shard="2/2", run_id="x", store="other.sqlite", **options)
        refused([shard_store(1), "other.sqlite"], before + found)
        Path("other.sqlite").unlink()

    run(path, SCORERS, shard="1/2", run_id="x", store=shard_store(1))
    other("options.scorers.name was 'bleu' and is 'rouge'", [*SCORERS[:-1], "rouge:rouge1,as=rouge_1"])
    other("options.sample was None and is 0.9", sample=0.9)
    Path("judgekit.toml").write_text("store_text = false\n")
    other("store_text was True and is False")
    Path("judgekit.toml").unlink()
    Path(path).write_text(Path(path).read_text() + "\n")
    other(f"inputs.{path} was")


def test_another_signature_of_a_scorer_is_refused():
    """As if the code that a spec names had changed between the shards."""
    path = own()
    stores = in_shards(path, 2, scorers=ONE)
    for place, store in enumerate(stores):
        opened = RunStore(store)
        record = opened.record()
        (known,) = record.scorers
        changed = known.model_copy(update={"signature": f"other {place}", "identity": ["ToolCallF1", {"place": place}]})
        with opened.transaction() as db:
            opened._put_record(db, record.model_copy(update={"scorers": (changed,)}))
    refused(stores, "scorers.tool_call_f1.signature was 'other 0' and is 'other 1'; scorers.tool_call_f1.identity")


def test_a_scorer_that_cannot_be_compared_is_refused_before_it_scores():
    path = own()
    space: dict[str, Callable[[Sample], float]] = {}
    exec("def own_scorer(sample): return 1.0", space)  # noqa: S102 - code without a file
    with pytest.raises(ConfigError, match="shards cannot compare the scorer own_scorer"):
        run(path, [scorer(space["own_scorer"])], shard="1/2", run_id="x", store="store.sqlite")
    assert RunStore("store.sqlite").numbers() == []


@pytest.mark.parametrize(
    ("table", "number"), [("samples", "number"), ("conversations", "number"), ("scores", "sample")]
)
def test_a_damaged_store_is_refused_and_nothing_of_it_is_kept(table, number):
    stores = in_shards(own(), 3, scorers=ONE)
    with closing(sqlite3.connect(stores[1])) as db, db:
        db.execute(f"UPDATE {table} SET checksum = checksum + 1 WHERE {number} = 31")  # noqa: S608
    refused(stores, f"shard 2/3 cannot be merged: shard-2.sqlite: a row of run 1 ({table}) is damaged", StoreError)


def test_a_damaged_record_and_another_file_are_refused():
    stores = in_shards(own(), 2, scorers=ONE)
    with closing(sqlite3.connect(stores[1])) as db, db:
        db.execute("UPDATE runs SET record = replace(record, '2/2', '1/2')")
    refused(stores, "shard-2.sqlite: run 1 is damaged", StoreError)
    Path("text.sqlite").write_text("no database, but long enough to be taken for one" * 20)
    refused([stores[0], "text.sqlite"], "text.sqlite", StoreError)


def test_samples_that_are_in_two_shards_are_refused():
    stores = in_shards(own(), 2, scorers=ONE)
    with closing(sqlite3.connect(stores[0])) as db, db:
        last = db.execute("SELECT max(number) FROM samples").fetchone()[0]
    opened = RunStore(stores[1])
    rows = [row for row in RunStore(stores[0], read_only=True).table_rows(1, "samples") if row[1] == last]
    recorder = Recorder(opened, opened.record(1))
    recorder.add_rows("samples", rows)
    recorder.flush()
    refused(stores, f"shard-2.sqlite: sample {last} belongs to another shard", StoreError)


def test_a_run_is_merged_once_into_a_file():
    stores = in_shards(own(), 2, scorers=ONE)
    merge_runs(stores, store="merged.sqlite")
    with pytest.raises(ConfigError, match="already contains run x, as run 1; delete it with judgekit runs --remove 1"):
        merge_runs(stores, store="merged.sqlite")
    assert RunStore("merged.sqlite").numbers() == [1]


def test_a_merge_that_is_interrupted_leaves_nothing_and_one_that_is_killed_an_unfinished_run(monkeypatch):
    stores, add = in_shards(own(), 2, scorers=ONE), Recorder.add_rows

    def stop(recorder: Recorder, table: str, rows: Sequence[tuple[object, ...]]) -> None:
        if table == "scores":
            there = RunStore("merged.sqlite", read_only=True)
            assert there.record().unfinished == "stopped early (merging was interrupted)"
            assert there.counts(1).samples == 60
            raise KeyboardInterrupt
        add(recorder, table, rows)

    with monkeypatch.context() as patch:
        patch.setattr(Recorder, "add_rows", stop)
        with pytest.raises(KeyboardInterrupt):
            merge_runs(stores, store="merged.sqlite")
    opened = RunStore("merged.sqlite")
    assert opened.numbers() == []
    assert opened.counts(1) == (0, 0, 0)
    assert merge_runs(stores, store="merged.sqlite").stop_reason == ""


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_records_of_which_none_can_be_read_are_an_error_of_the_merge():
    path = lines("rows.jsonl", [json.dumps({"id": f"s{number}", "trace": {"messages": 1}}) for number in range(9)])
    stores = in_shards(path, 3, scorers=ONE)
    refused(stores, "none of the 9 records could be read", TraceError)


def tone() -> PromptScorer:
    """A judge that finds the tone of every third conversation lacking."""
    judge = ScriptedJudge(
        lambda request: {
            "reason": "as heard",
            "evidence": [],
            "verdict": "lacking" if re.search(r"Hi \d*[369]\b", request.messages[1].content) else "fitting",
        }
    )
    return PromptScorer(load_prompt("tone"), judge)


def test_judged_shards_are_merged_with_what_the_judge_was_asked_and_audited_as_the_whole():
    path = own(count=40)
    for number in (1, 2, 3):
        run(path, [tone(), ToolCallF1()], shard=f"{number}/3", run_id="x", store=shard_store(number))
    merged = merge_runs(map(shard_store, (1, 2, 3)), store="a/merged.sqlite")
    whole = run(path, [tone(), ToolCallF1()], store="b/whole.sqlite")
    assert without_times(merged) == without_times(whole)
    assert [one[:3] for one in merged.exchanges()] == [one[:3] for one in whole.exchanges()]
    assert [one[3].messages for one in merged.exchanges()] == [one[3].messages for one in whole.exchanges()]
    assert merged.summary["tone"].requests == whole.summary["tone"].requests > 0
    verdicts = ["lacking" if number % 3 == 0 or number % 8 == 1 else "fitting" for number in range(40)]
    rows = [f"s{number},tone,{verdict},ann" for number, verdict in enumerate(verdicts)]
    labels = read_labels(lines("labels.csv", ["sample,scorer,value,annotator", *rows]))
    assert str(audit(merged, labels)) == str(audit(whole, labels))
    assert merged.audited == whole.audited
    assert "kappa" in merged.audited["tone"]
