"""What may make the difference between two runs another than it seems: references, tasks and pairs that changed."""

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import pytest

from judgekit.analysis.compare import compare
from judgekit.errors import ConfigError
from judgekit.jobs.api import run
from judgekit.runs.recorder import Recorder
from judgekit.runs.results import Run
from judgekit.runs.rows import Row, RunRecord, ScorerRecord
from judgekit.runs.schema import checksum
from judgekit.runs.store import RunStore, now
from judgekit.score import Score
from judgekit.scoring import scorer
from judgekit.traces.message import AIMessage, HumanMessage, ToolCall
from judgekit.traces.sample import Sample
from judgekit.traces.trace import Trace

STORE = Path("runs.sqlite")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@scorer
def fine(sample: Sample) -> float:
    return 1.0


def sample(sample_id: str, asked: str = "Hi", **known: object) -> Sample:
    trace = Trace(messages=[HumanMessage(asked), AIMessage(f"Hello {sample_id}")])
    return Sample.model_validate({"id": sample_id, "trace": trace, **known})


def scored(samples: Iterable[Sample]) -> Run:
    return run(samples, [fine], store=STORE)


def without_text(*samples: Sample) -> Run:
    """A run as the command line makes it with ``store_text = false``."""
    store = RunStore(STORE)
    known = [ScorerRecord(name="fine", signature="0", identity=None, judged=False)]
    record = store.begin(RunRecord(started_at=now(), ended_at=now(), scorers=known, keeps_text=False))
    recorder = Recorder(store, record)
    for number, one in enumerate(samples):
        recorder.add_sample(number, one)
        recorder.add_row(Row(index=number, sample_id=one.id, score=Score.scored("fine", 1)))
    recorder.flush()
    return Run(store, record)


def forget_hashes(run: int) -> None:
    """Makes a run one of samples that cannot be hashed."""
    with closing(sqlite3.connect(STORE)) as db:
        kept = [
            (*row[:-5], None, None, None, row[-2]) for row in db.execute("SELECT * FROM samples WHERE run = ?", (run,))
        ]
        places = ", ".join("?" * (len(kept[0]) + 1))
        db.executemany(f"REPLACE INTO samples VALUES ({places})", [(*row, checksum(row)) for row in kept])  # noqa: S608
        db.commit()


def ids(number: int) -> list[str]:
    return [f"s{n}" for n in range(number)]


CHANGES = [
    ({"reference": "x"}, {"reference": "y"}),
    ({"reference": "x"}, {}),
    ({"references": ["x"]}, {"references": ["x", "y"]}),
    ({"reference_tool_calls": []}, {}),
    ({"reference_tool_calls": [ToolCall("f", {"n": 1})]}, {"reference_tool_calls": [ToolCall("f", {"n": 2})]}),
    ({"reference_topics": ["x"]}, {"reference_topics": ["y"]}),
    ({"label": "x"}, {"label": "y"}),
    ({"metadata": {"task": {"id": 1}}}, {"metadata": {"task": {"id": 2}}}),
    ({"baseline": Trace(messages=[AIMessage("x")])}, {"baseline": Trace(messages=[AIMessage("y")])}),
]


def test_pairs_whose_references_or_tasks_changed_are_compared_only_if_that_is_allowed():
    for before, after in CHANGES:
        a = scored(sample(one, **before) for one in ids(9))
        b = scored(sample(one, **(after if n >= 4 else before)) for n, one in enumerate(ids(9)))
        for one, other in ((a, b), (b, a)):
            with pytest.raises(ConfigError) as refused:
                compare(one, other)
            said = f"runs {one.number} (A) and {other.number} (B): references or tasks differ in 5 of 9 pairs ('s4', 's5', 's6', ...)"
            assert said in str(refused.value)
            assert "--allow-changed-references" in str(refused.value)
            assert "allow_changed_references=True" in str(refused.value)
            found = compare(one, other, allow_changed_references=True)
            assert found["fine"].pairs == 9
            assert list(found.warnings) == [
                "references or tasks differ in 5 of 9 pairs ('s4', 's5', 's6', ...), so the difference may come from them"
            ]


def test_references_that_did_not_change_are_not_warned_of():
    made = {"reference": "x", "reference_tool_calls": [ToolCall("f", {"n": 1, "m": 2})]}
    again = {"reference": "x", "reference_tool_calls": [ToolCall("f", {"m": 2.0, "n": 1}, id="c1")]}
    a, b = (scored(sample(one, **known) for one in ids(3)) for known in (made, again))
    for allowed in (True, False):
        assert compare(a, b, allow_changed_references=allowed).warnings == ()


def test_samples_without_a_counterpart_may_have_any_references():
    a = scored([*(sample(one, reference="x") for one in ids(3)), sample("a", reference="y")])
    b = scored([sample("b", reference="z"), *(sample(one, reference="x") for one in reversed(ids(3)))])
    assert compare(a, b).warnings == ()


def test_the_pair_that_changed_is_named_whatever_the_order_of_the_runs():
    a = scored(sample(one, reference="x") for one in ids(4))
    b = scored(sample(one, reference="y" if one == "s1" else "x") for one in reversed(ids(4)))
    for one, other in ((a, b), (b, a)):
        with pytest.raises(ConfigError, match=r"differ in 1 of 4 pairs \('s1'\)"):
            compare(one, other)


def test_trials_that_share_their_id_are_paired_in_their_order_with_their_references():
    def trials(*references: str) -> Run:
        return scored(sample("task", reference=one, group="task") for one in references)

    a = trials("x", "y", "z")
    (found,) = compare(a, trials("x", "y", "z")).warnings
    assert "paired in order" in found
    with pytest.raises(ConfigError, match=r"differ in 2 of 3 pairs \('task'\)"):
        compare(a, trials("y", "x", "z"))


def test_a_run_in_which_a_scorer_is_still_at_work_is_compared_by_the_right_references():
    """Samples that have no score yet do not shift the others."""
    store = RunStore(STORE)
    known = [ScorerRecord(name="fine", signature="0", identity=None, judged=False)]
    record = store.begin(RunRecord(started_at=now(), ended_at=now(), scorers=known))
    recorder = Recorder(store, record)
    for number, name in enumerate(ids(6)):
        recorder.add_sample(number, sample(name, reference=name))
        if number % 2:
            recorder.add_row(Row(index=number, sample_id=name, score=Score.scored("fine", 1)))
    recorder.flush()
    other = scored(sample(one, reference=one) for one in ids(6))
    assert not any("references" in warning for warning in compare(Run(store, record), other).warnings)


@pytest.mark.parametrize("old", [(1,), (1, 2)])
def test_of_a_run_without_hashes_it_is_not_known_whether_references_changed(old):
    for reference in "xy":
        scored(sample(one, asked=reference, reference=reference) for one in ids(3))
    for number in old:
        forget_hashes(number)
    found = compare(Run.stored(1, STORE), Run.stored(2, STORE))
    (warning,) = found.warnings
    assert warning == "it is unknown whether the references of 3 of 3 pairs changed, because a run has no hash of them"


def test_documents_and_fields_that_differ_are_warned_of_since_either_side_may_have_made_them():
    a = scored(sample(one, documents=["x"], fields={"booked": 1}) for one in ids(4))
    b = scored(
        sample(one, documents=["x" if n else "y"], fields={"booked": 2 if n == 3 else 1})
        for n, one in enumerate(ids(4))
    )
    (warning,) = compare(a, b).warnings
    assert warning == (
        "documents or fields differ in 2 of 4 pairs ('s0', 's3'), which is expected if the agent produced them; if they "
        "are references, the scores cannot be compared"
    )


def test_first_messages_of_the_user_that_differ_are_warned_of():
    a, b = (scored(sample(one, "Hi" if n < up else "Hello") for n, one in enumerate(ids(4))) for up in (4, 3))
    (warning,) = compare(a, b).warnings
    assert warning == (
        "the user's first message differs in 1 of 4 pairs ('s3'), which is expected if the user is simulated; otherwise "
        "these pairs may not be the same task"
    )


def test_without_text_changed_references_are_found_and_all_else_is_not():
    a = without_text(sample("x", "Hi", reference="x", documents=["x"]), sample("y"))
    b = without_text(sample("x", "Hello", reference="x", documents=["y"]), sample("y"))
    assert compare(a, b).warnings == ()
    with pytest.raises(ConfigError, match=r"differ in 1 of 2 pairs \('x'\)"):
        compare(a, without_text(sample("x", reference="y"), sample("y")))


@pytest.mark.parametrize(("of_a", "of_b", "few"), [(10, 10, False), (21, 10, True), (10, 21, True), (20, 10, False)])
def test_few_pairs_among_many_samples_are_warned_of(of_a, of_b, few):
    """Few are less than half of the samples of the larger run."""
    found = compare(scored(map(sample, ids(of_a))), scored(map(sample, ids(of_b)))).warnings
    said = f"only 10 of {of_a} samples of A and 10 of {of_b} of B are paired, and only these are compared"
    assert list(found) == ([said] if few else [])


def test_ids_that_were_recorded_cannot_steer_the_terminal():
    a, b = (scored([sample("\x1b[2J", reference=one)]) for one in "xy")
    with pytest.raises(ConfigError) as refused:
        compare(a, b)
    assert "\x1b" not in str(refused.value)
    assert "\x1b" not in str(compare(a, b, allow_changed_references=True))


@pytest.mark.parametrize("lost", [2, 5])
def test_scores_of_a_damaged_sample_are_left_out_and_no_gate_is_met(lost):
    for _ in range(2):
        scored(sample(one, reference=one) for one in ids(6))
    with closing(sqlite3.connect(STORE)) as db:
        db.execute("UPDATE samples SET trace_id = 'x' WHERE run = 2 AND number = ?", (lost,))
        db.commit()
    found = compare(Run.stored(1, STORE), Run.stored(2, STORE), gates=["fine.pairs >= 1"])
    assert "fine: 1 damaged row left out; judgekit resume repeats these scores" in found.warnings
    assert not any("references" in warning for warning in found.warnings)
    assert (found.pairs, found.gates.met, found.gates.gates[0].value_text) == (5, False, "1 damaged row left out")
