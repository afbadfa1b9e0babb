"""The rows of a run."""

import pytest
from pydantic import ValidationError

from judgekit.runs.results import Row, Run
from judgekit.score import JudgeCall, Score


def row(index: int, sample_id: str, scorer: str = "s", value: float = 1) -> Row:
    return Row(sample_id=sample_id, index=index, score=Score.scored(scorer, value))


def test_a_run_is_its_rows_in_their_order():
    rows = (row(0, "a"), row(1, "b"), row(2, "c"))
    assert tuple(Run(rows)) == rows
    assert len(Run(rows)) == 3
    assert len(Run(())) == 0


def test_a_run_and_its_rows_cannot_be_changed():
    found = Run((row(0, "a"),))
    with pytest.raises(AttributeError):
        found.stopped = "x"
    with pytest.raises(ValidationError, match="frozen"):
        found.rows[0].index = 5


def test_a_row_is_the_same_after_a_round_trip_through_json():
    one = row(3, "a\u2028\x1b[2J", value=0.1)
    assert Row.model_validate_json(one.model_dump_json()) == one


@pytest.mark.parametrize(
    ("ids", "repeated"),
    [("", ()), ("abc", ()), ("aba", ("a",)), ("abbaab", ("b", "a")), ("aaa", ("a",))],
)
def test_an_id_of_more_than_one_sample_is_reported_once(ids, repeated):
    found = Run(tuple(row(index, name, scorer) for index, name in enumerate(ids) for scorer in ("s", "t")))
    assert found.duplicate_ids == repeated


def test_the_summary_counts_each_scorer_by_itself():
    summary = Run((row(0, "a", "s", 1), row(0, "a", "t", 0), row(1, "b", "s", 0.5))).summary
    assert {line.scorer: (line.value, line.total) for line in summary} == {"s": (0.75, 2), "t": (0.0, 1)}


def test_a_run_prints_as_its_summary():
    assert (
        str(Run((row(0, "a", "s", 1), row(0, "a", "longer", 0)))) == "s       1.00 (n=1 of 1)\nlonger  0.00 (n=1 of 1)"
    )
    assert str(Run(())) == "no scores"


def test_a_run_that_was_stopped_says_so():
    assert str(Run((row(0, "a"),), stopped="interrupted")).splitlines() == [
        "s  1.00 (n=1 of 1)",
        "stopped early (interrupted): only the samples that were done are counted",
    ]


def test_ids_that_stand_more_than_once_are_shown_without_what_would_steer_a_terminal():
    ids = ["a\x1b[2J", "b\nc", "d", "e", "f", "g"]
    found = Run(tuple(row(index, name) for index, name in enumerate(ids * 2)))
    assert str(found).splitlines()[1:] == [
        r"6 ids belong to more than one sample: 'a\x1b[2J', 'b\nc', 'd', 'e', 'f'",
    ]


def test_what_python_shows_of_a_run_is_short():
    assert repr(Run((row(0, "a"),) * 1_000)) == "Run(stopped='')"


def test_a_row_can_be_kept_without_the_words_that_may_quote_the_conversation():
    call = JudgeCall(judge="j", prompt="p@1", cost_usd=0.5)
    details = {"tp": 2, "ratio": 0.5, "ok": True, "none": None, "requests": [{"request": "my secret", "message": 3}]}
    score = Score.scored("s", 0.5, label="good", reason="you said my secret", details=details, calls=[call])
    kept = Row(sample_id="a", index=1, score=score).without_text()
    assert "secret" not in kept.model_dump_json()
    assert (kept.sample_id, kept.score.value, kept.score.label, kept.score.calls) == ("a", 0.5, "good", (call,))
    assert kept.score.details == {
        "tp": 2, "ratio": 0.5, "ok": True, "none": None, "requests": [{"request": "", "message": 3}]
    }  # fmt: skip
    assert score.reason == "you said my secret"


def test_what_failed_is_still_known_by_its_class_without_its_words():
    score = Score.failed("s", "ReplyError: it says my secret", error="ReplyError")
    kept = Row(sample_id="a", index=0, score=score).without_text()
    assert (kept.score.reason, kept.score.error) == ("", "ReplyError")
