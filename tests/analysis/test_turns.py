"""Labels of people on turns: given on a sheet or in a queue, stored by turn, and compared with the judge's verdicts."""

import csv
import io

import pytest

from judgekit import Run, add_labels, audit, run
from judgekit.analysis.labels import HumanLabel, read_labels
from judgekit.analysis.sampling import draw_samples
from judgekit.analysis.stored_labels import stored_labels
from judgekit.judges.scripted import ScriptedJudge
from judgekit.reports.html import ReportPage
from judgekit.reports.listing import Listing
from judgekit.reports.sheet import LabelSheet
from judgekit.scorers.prompted import PromptScorer
from judgekit.traces.turns import find_turns
from judgekit.view.labeling import LabelQueue
from tests.scorers.test_turns import answering, conversation, planted


@pytest.fixture
def judged(tmp_path) -> Run:
    """Three conversations of four turns, of which the judge finds the second of the first to lack tone."""
    samples = [conversation(4).model_copy(update={"id": f"s{at}"}) for at in range(3)]
    samples[0] = planted(samples[0], find_turns(samples[0].trace)[1])
    judge = ScriptedJudge(answering)
    return run(samples, [PromptScorer("tone", judge, per_turn=True)], store=tmp_path / "runs.sqlite")


def sheet(judged: Run, path) -> list[dict[str, str]]:
    """The rows of the sheet for a spreadsheet, in the order of the samples."""
    drawn = draw_samples(judged, "tone", 9)
    text = "".join(LabelSheet(judged, judged.scorers[0], drawn).table())
    path.write_text(text, encoding="utf-8")
    return sorted(
        csv.DictReader(io.StringIO(text.lstrip("\ufeff"))), key=lambda row: (row["number"], int(row["message"]))
    )


def labels(*answers: str, annotator: str = "Ann", sample: int = 0) -> list[HumanLabel]:
    """Labels on the turns of a sample."""
    return [
        HumanLabel(sample=f"s{sample}", scorer="tone", value=answer, message=4 * at - 1, annotator=annotator, run=1)
        for at, answer in enumerate(answers, 1)
    ]


def test_a_sheet_has_a_row_for_each_turn_which_shows_nothing_later_and_is_read_back(judged, tmp_path):
    rows = sheet(judged, tmp_path / "labels.csv")
    assert [(row["sample"], row["message"]) for row in rows] == [
        (f"s{at}", str(m)) for at in range(3) for m in (3, 7, 11, 15)
    ]
    assert rows[0]["choices"] == "fitting; lacking; not_applicable"
    assert ["answered2" in row["conversation"] for row in rows[:4]] == [False, True, True, True]
    blank = read_labels(tmp_path / "labels.csv")
    assert len(blank) == 12
    [findings] = audit(judged, blank).scorers
    assert findings.unused_labels == {"drawn and left blank": 12}


def test_labels_on_turns_are_stored_by_turn_and_the_last_of_a_person_counts(judged):
    assert add_labels(judged, labels("fitting", "fitting", "fitting", "lacking"))["added"] == 4
    assert add_labels(judged, labels("fitting", "lacking", "fitting", "lacking")) == {"as before": 3, "changed": 1}
    kept = {label.message: label.value for label in stored_labels(judged)}
    assert kept == {3: "fitting", 7: "lacking", 11: "fitting", 15: "lacking"}


def test_an_audit_compares_verdicts_turn_by_turn(judged):
    given = labels("fitting", "lacking", "not_applicable", "lacking")
    given += labels("fitting", "fitting", "fitting", "fitting", sample=1)
    given += labels("fitting", annotator="Bob", sample=2)
    given.append(given[0].model_copy(update={"message": 4, "annotator": "Bob"}))
    [findings] = audit(judged, given).scorers
    assert {name: figure.value for name, figure in findings.turns.items()} == {
        "same verdict on a turn": pytest.approx(7 / 9),
        "bad turns found": 0.5,
        "false alarms on good turns": 0.0,
    }
    assert findings.unused_labels == {
        "on single turns, which correct no mean": 9,
        "on turns that the judge did not judge": 1,
    }
    assert (findings.sample_count, findings.correction.corrected) == (0, None)
    assert "turns" in [section.name for section in findings.sections]


def test_a_queue_takes_the_labels_of_turns(judged):
    queue = LabelQueue.of(Run.stored(1, judged.store.path), "tone", 9, 0)
    state = queue.add({"annotator": "Ann", "number": 1, "value": "lacking", "message": "7"})
    state = queue.add({"annotator": "Ann", "number": 1, "value": "fitting", "message": "11"})
    assert {place: label["value"] for place, label in state["own"].items()} == {"1:7": "lacking", "1:11": "fitting"}
    assert {label.message for label in stored_labels(judged)} == {7, 11}


def test_reports_count_turns_by_number_and_list_the_first_bad_one(judged):
    [line] = ReportPage.of(judged).head["b"]["scorers"]
    assert line["turns"] == [[1, 3, 3], [2, 2, 3], [3, 3, 3], [4, 3, 3]]
    assert Listing.of(judged).columns(["tone"])["scores"][0]["first_bad"] == [2, None, None]
