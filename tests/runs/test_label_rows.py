"""Human labels in a file of runs."""

import sqlite3
from contextlib import closing
from pathlib import Path

from judgekit.jobs.api import merge_runs, run
from judgekit.runs.schema import LabelRow
from judgekit.runs.store import RunStore
from judgekit.scoring import scorer
from judgekit.traces.message import HumanMessage
from judgekit.traces.sample import Sample

RUNS = Path("kept") / "runs.sqlite"


@scorer
def fine(sample: Sample) -> float:
    return 1.0


def label(
    run: int, sample: int, given_at: int = 0, value: str | None = '"yes"', annotator: str | None = "ann"
) -> LabelRow:
    return LabelRow(
        run, given_at, sample, "fine", annotator, value, None, "", None, "random", 0.5, "human", "labels.csv"
    )


def add(store: RunStore, *rows: LabelRow) -> None:
    with store.transaction():
        store.add_labels(rows)


def stored(samples: int = 3) -> RunStore:
    run([Sample.of([HumanMessage(f"Hi {n}")], id=f"s{n}") for n in range(samples)], [fine], store=RUNS)
    return RunStore(RUNS)


def test_labels_are_kept_in_the_order_in_which_they_were_given():
    store = stored()
    add(store, label(1, 2), label(1, 0, value=None, annotator=None))
    add(RunStore(RUNS), label(1, 2, 7, '"no"'))
    rows = list(store.label_rows(1))
    assert [(row.sample, row.annotator, row.value) for row in rows] == [
        (2, "ann", '"yes"'),
        (0, None, None),
        (2, "ann", '"no"'),
    ]
    assert [row.given_at for row in rows] == [1, 2, 7]
    assert (store.labeled_runs(), list(store.label_rows(2))) == ([1], [])
    assert store.sample_numbers(1) == {"s0": [0], "s1": [1], "s2": [2]}


def test_a_label_that_is_dated_before_the_last_one_is_put_after_it():
    store = stored()
    add(store, label(1, 0, 50), label(1, 1, 20))
    assert [row.given_at for row in store.label_rows(1)] == [50, 51]


def test_a_label_that_was_changed_by_hand_is_damaged():
    store = stored()
    add(store, label(1, 0), label(1, 1))
    with closing(sqlite3.connect(RUNS)) as db, db:
        db.execute("UPDATE labels SET value = '\"no\"' WHERE sample = 0")
    assert [row and row.sample for row in store.label_rows(1)] == [None, 1]


def test_merged_shards_keep_their_labels():
    """Also those that were given in each at the same time, which are of other samples."""
    Path("rows.jsonl").write_text(
        "".join(
            f'{{"id": "s{n}", "trace": {{"messages": [{{"role": "user", "content": "{n}"}}]}}}}\n' for n in range(8)
        )
    )
    stores = [Path(f"shard-{n}.sqlite") for n in (1, 2)]
    for n, path in enumerate(stores, 1):
        run("rows.jsonl", ["tool_call_f1"], shard=f"{n}/2", run_id="x", store=path)
        store = RunStore(path)
        add(store, label(1, min(store.sample_numbers(1).values())[0], 7))
    merged = merge_runs(stores, store=RUNS)
    rows = list(merged.store.label_rows(merged.number))
    assert len({row.sample for row in rows}) == 2
    assert [row.annotator for row in rows] == ["ann", "ann"]
