"""The rows of a run."""

import tracemalloc

import judgekit.runs.results
from judgekit import AIMessage, HumanMessage, Sample, run
from judgekit.analysis.gates import GateResults, check_gates
from judgekit.reports.junit import junit_report
from judgekit.reports.markdown import markdown_report
from judgekit.runs.results import Run
from judgekit.runs.rows import Row
from judgekit.score import Score, ScoreStatus
from judgekit.scoring import FunctionScorer


def row(index: int, sample_id: str, scorer: str = "s", value: float = 1) -> Row:
    return Row(sample_id=sample_id, index=index, score=Score.scored(scorer, value))


def lost(index: int, sample_id: str, scorer: str, status: ScoreStatus) -> Row:
    return Row(sample_id=sample_id, index=index, score=Score(scorer=scorer, status=status, reason="why"))


def test_a_run_is_its_rows_in_their_order(run_of):
    rows = [row(0, "a"), row(1, "b"), row(2, "c")]
    found = run_of(*reversed(rows))
    assert list(found) == rows
    assert list(found) == rows  # and once more
    assert (len(found), len(run_of())) == (3, 0)


def test_rows_are_found_by_their_scorer_and_status(run_of):
    rows = [
        row(0, "a", "s"),
        row(0, "a", "t"),
        lost(1, "b", "s", "skipped"),
        lost(2, "c", "s", "failed"),
        row(2, "c", "t"),
    ]
    found = run_of(*rows)
    assert list(found.rows(scorer="s")) == [rows[0], rows[2], rows[3]]
    assert list(found.rows(statuses={"failed", "skipped"})) == [rows[2], rows[3]]
    assert list(found.rows(scorer="t", statuses=["scored"])) == [rows[1], rows[4]]
    assert list(found.rows(scorer="u")) == list(found.rows(statuses=())) == []


def test_the_lowest_of_a_scorer_come_first_and_samples_of_one_value_in_their_order(run_of):
    values = [0.5, 0.25, 1, 0.25, 0]
    found = run_of(
        *(row(index, str(index), "s", value) for index, value in enumerate(values)),
        lost(5, "5", "s", "failed"),
        row(0, "0", "t", 0),
    )
    assert [one.sample_id for one in found.lowest("s", 3)] == ["4", "1", "3"]
    assert [one.sample_id for one in found.lowest("s", 99)] == ["4", "1", "3", "0", "2"]


def test_an_id_of_more_than_one_sample_is_reported_once(run_of):
    for ids, repeated in (("", ()), ("abc", ()), ("aba", ("a",)), ("abbaab", ("a", "b")), ("aaa", ("a",))):
        found = run_of(*(row(index, name, scorer) for index, name in enumerate(ids) for scorer in ("s", "t")))
        assert found.duplicate_ids == repeated


def test_a_run_that_has_not_ended_says_so(run_of):
    whole = run_of(row(0, "a"))
    broken = Run(whole.store, whole.record.model_copy(update={"ended_at": None}))
    assert str(broken).splitlines()[-1] == "running or interrupted: only the scores so far are counted"
    assert "`running or interrupted`. Only" in "".join(markdown_report(broken, GateResults()))
    assert 'message="running or interrupted"' in "".join(junit_report(broken, GateResults()))


def test_ids_that_stand_more_than_once_are_shown_without_what_would_steer_a_terminal(run_of):
    ids = ["a\x1b[2J", "b\nc", "d", "e", "f", "g"]
    found = run_of(*(row(index, name) for index, name in enumerate(ids * 2)))
    assert str(found).splitlines()[1:] == [r"6 ids used by more than one sample: 'a\x1b[2J', 'b\nc', 'd', 'e', 'f'"]


def test_what_python_shows_of_a_run_is_short(run_of):
    found = run_of(*(row(index, str(index)) for index in range(20)), stop_reason="interrupted")
    assert repr(found) == "Run(number=1, rows=20, stop_reason='interrupted')"


def test_rows_are_read_as_they_are_asked_for(run_of):
    """Of 500 rows with reasons of 10,000 letters no third is ever in memory."""
    found = run_of(
        *(Row(index=index, sample_id="a", score=Score.scored("s", 1, reason="x" * 10_000)) for index in range(500))
    )
    tracemalloc.start()
    try:
        assert sum(len(one.score.reason) for one in found) == 5_000_000
        assert found.summary["s"].total == 500
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 1_600_000


def test_samples_without_a_score_are_missing_and_count_among_all(run_of):
    """As where a run broke off while a judge was asked."""
    found = run_of(
        *(row(index, str(index), "quick") for index in range(9)), row(0, "0", "slow"), row(1, "1", "slow", 0)
    )
    assert str(found.summary["slow"]) == "0.50 (n=2 of 9; 7 missing)"
    assert str(found.summary["quick"]) == "1.00 (n=9 of 9)"
    gates = check_gates(found, ["slow.coverage >= 50%", "failed <= 1%"], min_coverage=0.5)
    assert [(gate.met, gate.value_text) for gate in gates.gates] == [
        (False, "found 2 of 9, 22.2%"),
        (True, "found 0 of 18, 0%"),
    ]
    assert gates.low_coverage == {"slow": "only 2 of 9 samples were scored, and min_coverage is 50%"}


def test_what_very_many_samples_are_like_is_told_by_some_of_them(monkeypatch):
    samples = [
        Sample.of([HumanMessage(f"Hi {n}"), AIMessage("Yo", model=f"m-{n % 2}")], id=f"s{n}") for n in range(200)
    ]
    found = run(samples, [FunctionScorer(lambda sample: float(sample.id != "s7"), "it", "1")])
    monkeypatch.setattr(judgekit.runs.results, "_DESCRIBED", 50)
    population = found.population("it")
    assert (population.samples, population.mean) == (200, 199 / 200)
    assert sum(population.agents.values()) == len(population.features["messages"]) == 50
    assert set(population.agents) == {"m-0", "m-1"}
