"""Human labels in a file of runs, and what they show: ways to cheat an audit are noticed or harmless."""

import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime

import pytest

from judgekit.analysis.audit import audit
from judgekit.analysis.compare import compare
from judgekit.analysis.label_plan import plan_labels
from judgekit.analysis.labels import HumanLabel
from judgekit.analysis.stored_labels import add_labels, stored_labels
from judgekit.errors import ConfigError, StoreError, TraceError
from judgekit.runs.audit_records import write_audit_record
from judgekit.runs.results import Run
from judgekit.runs.rows import Input
from judgekit.runs.schema import LabelRow
from judgekit.score import JudgeCall, Score

VERDICTS = [float(number % 3 > 0) for number in range(120)]
TRUTH = [1 - verdict if number % 5 == 0 else verdict for number, verdict in enumerate(VERDICTS)]
"""People disagree with a fifth of the verdicts."""


@pytest.fixture
def run(judged, tmp_path) -> Run:
    return judged(VERDICTS, store=tmp_path / "runs.sqlite")


def values(labels):
    return {label.number: label.value for label in labels}


def read(run, run_input="ab"):
    """The run, as if it had read a file."""
    inputs = (Input(path="x.jsonl", sha256=run_input, size=1, modified_at=0),)
    return Run(run.store, run.store.change(run.record.model_copy(update={"inputs": inputs})))


def notes_of(found):
    return "\n".join(found.scorers[0].notes)


# --- what is stored


def test_labels_are_stored_with_all_that_they_say_and_when(run, said):
    began = datetime.now(UTC)
    fields = {"annotator": "ann", "reason": "rude", "role": "test", "selection": "random", "probability": 0.5}
    assert add_labels(run, said({3: "lacking", 5: 0.5}, **fields, file="a.csv")) == {"added": 2}
    first, second = stored_labels(Run.stored(1, run.store.path))
    assert began <= first.given_at <= second.given_at <= datetime.now(UTC)
    told = {"sample": "s3", "scorer": "tone", "run": 1, "number": 3, "source": "human", "file": "a.csv", **fields}
    assert first == HumanLabel(value="lacking", given_at=first.given_at, **told)
    assert (second.number, second.value) == (5, 0.5)


def test_the_same_file_adds_nothing_the_second_time(run, said):
    labels = [*said({0: 1, 1: "no"}, file="a.csv"), *said({2: None}, file="a.csv")]
    assert add_labels(run, labels) == {"added": 2, "left blank": 1}
    assert add_labels(run, labels) == {"as before": 3}
    assert len(list(run.store.label_rows(1))) == 3


def test_a_run_without_text_stores_no_reasons(run, said):
    textless = Run(run.store, run.record.model_copy(update={"keeps_text": False}))
    labels = said({0: 1}, reason="She said her name.")
    assert [add_labels(textless, labels), add_labels(textless, labels)] == [{"added": 1}, {"as before": 1}]
    assert [label.reason for label in stored_labels(run)] == [""]


def test_the_last_label_of_a_person_counts_and_a_file_that_is_older_does_not_bring_back_the_one_before(run, said):
    add_labels(run, said({0: 1, 1: 1}, annotator="ann", file="a.csv"))
    assert add_labels(run, said({0: 0}, annotator="ann", file="b.csv")) == {"changed": 1}
    assert add_labels(run, said({0: 0.5}, annotator="bob", file="b.csv")) == {"added": 1}
    assert add_labels(run, said({0: 1, 1: 1}, annotator="ann", file="a.csv")) == {"as before": 1, "replaced since": 1}
    stored = [(label.annotator, label.number, label.value) for label in stored_labels(run)]
    assert stored == [("ann", 0, 0), ("ann", 1, 1), ("bob", 0, 0.5)]
    assert add_labels(run, said({0: 0.5, 1: 1}, annotator="ann", file="a.csv")) == {"changed": 1, "as before": 1}
    assert stored_labels(run)[0].value == 0.5


def test_a_blank_withdraws_no_label(run, said):
    add_labels(run, said({0: 1}, file="a.csv"))
    assert add_labels(run, said({0: None, 1: None}, file="a.csv")) == {"left blank": 2}
    assert values(stored_labels(run)) == {0: 1, 1: None}


def test_a_label_that_is_written_otherwise_is_the_same_label(run, said):
    add_labels(run, said({0: "yes", 1: "fitting"}, file="a.csv"))
    assert add_labels(run, said({0: "fitting", 1: 1.0}, file="b.csv")) == {"as before": 2}


def test_a_sample_that_was_drawn_stays_drawn_if_its_label_is_given_anew(run, said):
    add_labels(run, said({0: 1}, selection="random", probability=0.5, file="sheet.csv"))
    add_labels(run, said({0: 0, 1: 0}, selection="convenience", file="picked.csv"))
    stored = [(label.value, label.selection, label.probability) for label in stored_labels(run)]
    assert stored == [(0, "random", 0.5), (0, "convenience", None)]
    (found,) = audit(run).scorers
    assert (found.labels, found.unused_labels) == (1, {"picked by hand, while other samples were drawn at random": 1})
    add_labels(run, said({0: 0}, file="sheet.csv"))  # the sheet itself was wrong
    assert stored_labels(run)[0].selection is None


@pytest.mark.parametrize(
    ("labels", "error"),
    [
        ([{"value": "unclear"}], "does not know the label 'unclear'"),
        ([{"value": 1, "scorer": "tune"}], "no scorer of run 1 is called 'tune'. Did you mean 'tone'?"),
        ([{"value": 1, "annotator": "ann"}, {"value": 0, "annotator": "ann"}], "'ann' gives sample 's0' two labels"),
        (
            [{"value": 1, "role": "test"}, {"value": 0, "role": "train", "annotator": "b"}],
            "has the roles test and train",
        ),
    ],
)
def test_labels_that_no_audit_could_read_are_not_stored(run, labels, error):
    given = [HumanLabel(**{"sample": "s0", "scorer": "tone", "number": 0, **fields}) for fields in labels]
    with pytest.raises((ConfigError, TraceError), match=error.replace("?", r"\?")):
        add_labels(run, [HumanLabel(sample="s1", scorer="tone", value=1), *given])
    assert list(run.store.label_rows(1)) == []


def test_labels_of_samples_that_are_not_stored_count_as_in_any_audit(run, said, judged):
    labels = [*said({0: 1, 777: 1}), HumanLabel(sample="s1", scorer="tone", value=1, run=9)]
    assert add_labels(run, labels) == {"added": 1, "not stored": 2}
    found = audit(run, labels)
    assert found.unmatched == {"run 1 has no score for 's777'": 1}
    assert found.scorers[0].unused_labels == {"run 9 is not kept": 1}
    twice = judged([1.0] * 2, ids=["a", "a"], store=run.store.path)
    given = [HumanLabel(sample="a", scorer="tone", value=1, **at) for at in ({}, {"number": 1}, {"number": 7})]
    assert add_labels(twice, given) == {"added": 1, "not stored": 2}


def test_labels_on_another_run_are_not_stored_with_this_one(run, judged, said):
    other = judged(VERDICTS, store=run.store.path)
    assert add_labels(other, [*said({0: 1}, run=1), *said({1: 1}, run=2)]) == {"added": 1, "not stored": 1}
    assert [values(stored_labels(each)) for each in (run, other)] == [{}, {1: 1}]


def test_labels_count_for_each_run_of_the_same_recordings(run, judged, said):
    first, second = read(run), read(judged(VERDICTS, store=run.store.path, model="m-2"))
    add_labels(second, said({0: 1, 1: 1}, selection="stratified", file="a.csv", run=1))
    assert [row.run for row in run.store.label_rows(1)] == [1, 1]
    add_labels(second, said({1: 0}, file="b.csv"))
    assert values(stored_labels(second)) == values(stored_labels(first)) == {0: 1, 1: 0}
    (found,) = audit(second).scorers
    assert (found.labels, found.selection) == (2, "unknown")


def test_labels_that_were_drawn_by_the_verdicts_of_a_run_in_another_file_are_not_drawn_by_these(run, said):
    here = read(run)
    add_labels(here, said({0: 1}, selection="stratified", run=9, recordings=here.recordings))
    assert [(one.run, one.number, one.selection) for one in stored_labels(here)] == [(1, 0, None)]


def test_labels_that_a_scorer_with_another_scale_does_not_know_are_left_out(run, judged, said):
    add_labels(read(run), said({0: "fitting", 1: 1}))
    other = read(judged(VERDICTS, store=run.store.path, scale={"good": 1.0, "bad": 0.0}))
    found = audit(other)
    assert found.unmatched == {"tone does not know these labels of run 1": 1}
    assert found.scorers[0].labels == 1


def test_a_run_in_memory_keeps_labels_as_long_as_it_lives_and_its_audit_adds_none(judged, said):
    run = judged(VERDICTS)
    add_labels(run, said({0: 1}))
    (found,) = audit(run, said({1: 1})).scorers
    assert found.labels == 2
    assert values(stored_labels(run)) == {0: 1}


def test_an_audit_whose_labels_cannot_be_stored_leaves_no_audit_record(run, said):
    only_read = Run.stored(1, run.store.path)
    with closing(sqlite3.connect(run.store.path, isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("judgekit.database.BUSY_SECONDS", 0.01)
            with pytest.raises(StoreError, match="another program is writing to it"):
                add_labels(only_read, said({0: 1}))
            found = audit(only_read, said(dict(enumerate(TRUTH))))
    assert found.scorers[0].labels == 120
    assert "the labels cannot be stored: " in notes_of(found)
    assert "So this audit leaves no audit record" in notes_of(found)
    assert run.audited == {"tone": "not audited"}


def test_a_stored_label_that_is_damaged_is_left_out_and_comes_back_with_its_file(run, said, judged):
    labels = said({0: 1, 1: 1}, file="a.csv")
    add_labels(run, labels)
    with closing(sqlite3.connect(run.store.path)) as db, db:
        db.execute("UPDATE labels SET value = '0' WHERE sample = 0")
    found = audit(run)
    assert (found.scorers[0].labels, found.unmatched) == (1, {"damaged in the file of runs": 1})
    other = read(judged(VERDICTS, store=run.store.path), "cd")
    assert "1 label left out: damaged in the file of runs" in compare(run, other).warnings
    assert add_labels(run, labels) == {"added": 1, "as before": 1}
    assert values(stored_labels(run)) == {0: 1, 1: 1}


def test_people_who_label_at_once_wait_for_each_other(run, said):
    path = run.store.path

    def label(person):
        for number in range(10):
            add_labels(Run.stored(1, path), said({number: number % 2}, annotator=f"p{person}"))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(label, range(4)))
    assert {(one.annotator, one.number) for one in stored_labels(run)} == {
        (f"p{p}", n) for p in range(4) for n in range(10)
    }
    times = [row.given_at for row in run.store.label_rows(1)]
    assert len(set(times)) == len(times) == 40


def test_a_comparison_takes_stored_labels(run, judged, said):
    other = judged(TRUTH, store=run.store.path)
    for each in (run, other):
        add_labels(each, said(dict(enumerate(TRUTH)), selection="random"))
    (found,) = compare(run, other)
    assert (found.correction.labels_a, found.correction.labels_b) == (120, 120)
    (found,) = compare(run, other, labels=said({0: 1 - TRUTH[0]}, run=1))
    assert found.correction.a == pytest.approx((sum(TRUTH) + 1 - 2 * TRUTH[0]) / 120)
    assert next(iter(compare(run, run))).correction is None
    assert len(list(run.store.label_rows(1))) == 120


def test_a_plan_counts_the_samples_that_are_labeled(run, said):
    add_labels(run, said({0: 1, 1: None, 2: 0}))
    lines = list(plan_labels(run, "tone", half_width=0.1, agreement=0.5).lines())
    assert "2 samples have labels already" in lines


# --- ways to cheat


def test_many_small_sheets_are_one_sample_whatever_their_order(run, said):
    """Six sheets of 20: each alone would show another agreement, and the best one could be kept."""
    sheets = [
        said({n: TRUTH[n] for n in range(first, 120, 6)}, selection="random", probability=1 / 6, file=f"{first}.csv")
        for first in range(6)
    ]
    (best,) = audit(run, sheets[1]).scorers
    for sheet in (*sheets, sheets[1]):
        (found,) = audit(run, sheet).scorers
    record = run.audits["tone"].record
    assert (found.sample_count, record.sample_count) == (120, 120)
    assert list(record.sources) == [f"{first}.csv" for first in (1, 0, 2, 3, 4, 5)]
    assert (found.selection, found.agreement["agreement"].value) == ("all", 0.8)
    assert best.sample_count == 20


def test_labels_that_were_edited_since_the_first_audit_are_counted_with_their_direction(run, said):
    with run.store.transaction():
        run.store.add_labels(
            LabelRow(1, 1, number, "tone", "ann", str(value), None, "", None, None, None, "human", "a.csv")
            for number, value in enumerate(TRUTH)
        )
    assert "changed since" not in notes_of(audit(run))
    first = run.audits["tone"].record.model_copy(update={"audited_at": datetime(2020, 11, 12, tzinfo=UTC)})
    write_audit_record(first.model_copy(update={"first_audited_at": None}), run.audits_folder)
    edited = dict(enumerate(TRUTH)) | {number: VERDICTS[number] for number in range(0, 20, 5)}
    found = audit(run, said(edited, annotator="ann", file="a.csv"))
    told = "4 of 120 labels changed since the audit of 12 November 2020, all towards the judge"
    assert told in found.scorers[0].notes
    assert run.audited["tone"].endswith(told)
    assert told in notes_of(audit(run))  # a second audit does not wash it off
    found = audit(run, said({number: 1 - VERDICTS[number] for number in (1, 2)}, annotator="ann"))
    assert "6 of 120 labels changed since the audit of 12 November 2020, 4 towards the judge" in found.scorers[0].notes
    audit(run, said(dict(enumerate(TRUTH)), annotator="ann", file="c.csv"))
    assert "changed" not in run.audited["tone"]


def test_labels_that_equal_all_verdicts_are_pointed_out(run, said, judged):
    own = said(dict(enumerate(VERDICTS)), file="own.csv")
    told = (
        "all 120 labels equal the judge's verdicts: it may be as good as people, or they have seen its verdicts, or the"
    )
    found = audit(run, own)
    assert told in notes_of(found)
    assert run.audits["tone"].record.sample_count == 120
    assert "equal the judge's" not in notes_of(audit(judged(VERDICTS[:19]), said(dict(enumerate(VERDICTS[:19])))))
    assert "equal the judge's" not in notes_of(audit(judged(VERDICTS), said(dict(enumerate([*VERDICTS[:119], 0.5])))))


def test_labels_by_a_judge_or_a_model_leave_no_audit_record_and_are_not_stored(judged, said, tmp_path):
    call = JudgeCall(judge="openai/judge-9", prompt="tone@1", model="judge-9-2025")
    scores = [Score.scored("tone", verdict, calls=[call]) for verdict in VERDICTS]
    run = judged(scores, store=tmp_path / "runs.sqlite")
    for name in ("openai/judge-9", "judge-9", "judge-9-2025", "gpt-4o", "Claude", "llm_judge"):
        labels = said(dict(enumerate(TRUTH)), annotator=name)
        found = audit(run, [*labels, *said({0: 1}, annotator="ann")])
        assert found.scorers[0].labels == 121
        who = f"by name, a model or a judge has labeled: '{name}'. So this audit leaves no audit record"
        assert who in notes_of(found)
        assert run.audited == {"tone": "not audited"}
        assert [label.annotator for label in stored_labels(run)] == ["ann"]
        assert add_labels(run, labels) == {"not stored": 120}


def test_labels_of_unknown_source_are_not_stored(run, said):
    labels = said({0: 1}, source="unknown")
    assert add_labels(run, labels) == {"not stored": 1}
    assert audit(run, labels).scorers[0].labels == 1
    assert stored_labels(run) == []


def test_a_changed_audit_record_is_void_and_says_so(run, said):
    audit(run, said(dict(enumerate(TRUTH))))
    path = run.audits_folder / run.audits["tone"].record.file_name
    fields = json.loads(path.read_text())
    path.write_text(json.dumps(fields))  # written otherwise, it says the same
    assert run.audits["tone"].record is not None
    path.write_text(json.dumps({**fields, "sample_count": 500}))
    assert run.audited["tone"] == (
        f"not audited ({path}: was changed since the audit, as its checksum shows; move it away and run judgekit audit again)"
    )
    del fields["checksum"]
    path.write_text(json.dumps(fields))
    assert "was changed since the audit" in run.audited["tone"]
