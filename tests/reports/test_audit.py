"""What an audit finds, on a terminal."""

import io
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgekit.analysis.corrected_means import MeanBound
from judgekit.analysis.findings import Audit, Guarantee, ScorerAudit
from judgekit.reports.audit import show_audit
from judgekit.runs.audit_records import Correction
from judgekit.runs.intervals import Estimate
from judgekit.terminal import console, printable

PLAIN = ScorerAudit(
    scorer="tone",
    fingerprint=None,
    kind="continuous",
    judge_mean=Estimate(value=0.5),
    correction=Correction(unavailable_reason="5 labels are too few"),
)


def shown(audit: Audit, show: int = 3, width: int = 100) -> str:
    made = console()
    made.file, made.width = io.StringIO(), width
    show_audit(audit, show, made)
    return made.file.getvalue()


def words(text: str) -> str:
    return " ".join(text.split())


def test_a_head_line_says_the_corrected_mean_and_how_far_people_agree_with_the_judge(audit_saying):
    [found] = audit_saying("").scorers
    assert found.headline == "corrected mean .58 [.51, .65], kappa .71 [.58, .82], n=120 from 2 people"
    assert found.model_copy(update={"annotators": 1}).headline.endswith("n=120 from 1 person")
    assert found.model_copy(update={"agreement": {}}).headline.endswith(", agreement undefined, n=120 from 2 people")
    assert PLAIN.headline == "not audited: 5 labels are too few"


@pytest.mark.parametrize("width", [80, 100, 140])
def test_all_that_is_found_is_shown_whatever_the_width(width, audit_saying):
    text = shown(audit_saying(""), width=width)
    assert max(map(len, text.splitlines())) <= width
    for line in (
        "audit of run 1 with labels.csv",
        "4 labels left out: unknown",
        "labels 1,240 labels on 120 samples labeled by people and by the judge; drawn at random from the run",
        "1 label left out: people are divided",
        "mean judge's mean (raw) 0.643 0.588 to 0.694 Wilson corrected mean (PPI++) 0.581 0.511 to 0.649 Wilson",
        "worth as much as 187 labels without the judge assumes: labels drawn at random",
        "agreement kappa 0.710 0.580 to 0.820 Wilson sensitivity -",
        "confusion human labels (rows), judge (columns) yes no yes 63 5 no 12 0",
        "among people two people 0.900 0.800 to 0.950 Wilson",
        "bias length -0.100 -0.300 to 0.100 Wilson",
        "calibration expected calibration error 0.050",
        "noise flip rate 0.080 0.050 to 0.120 Wilson near the threshold 0.110",
        "480 repeats of at most 960 in all repeat twice",
        "where the confidence is at least 0.8, people disagree with at most 10% of the verdicts, with a probability",
        "notes a note",
        "disagreements all 2, worst first",
        "the judge: yes (1.00): it says so anna: no (0.00): nothing came a person: no (0.00)",
    ):
        assert line in words(text)


@pytest.mark.parametrize(
    ("threshold", "told"), [(2 / 3, "0.666666"), (0.57, "0.57"), (1 - 1e-10, "0.999999"), (1, "1")]
)
def test_the_confidence_that_is_told_keeps_the_verdicts_that_are_guaranteed(threshold, told, audit_saying):
    [found] = audit_saying("").scorers
    guarantee = found.guarantee.model_copy(update={"threshold": threshold})
    text = shown(audit_saying("").model_copy(update={"scorers": (found.model_copy(update={"guarantee": guarantee}),)}))
    assert f"where the confidence is at least {told}, people" in words(text)


def test_the_figures_of_all_parts_stand_below_each_other(audit_saying):
    figures = [line for line in shown(audit_saying("")).splitlines() if line.rstrip().endswith("Wilson")]
    assert len(figures) == 11
    assert len({re.search(r"\d\.\d{3} ", line).end() for line in figures}) == 1


def test_as_many_disagreements_are_shown_as_are_asked_for(audit_saying):
    text = shown(audit_saying(""), show=1)
    assert "the worst 1 of 2" in text
    assert (text.count("it says so"), shown(audit_saying(""), show=0).count("disagreements")) == (1, 0)


def test_what_is_refused_is_said_with_its_reason_and_has_no_number():
    guarantee = Guarantee(alpha=0.1, delta=0.05, unavailable_reason="no verdict is sure")
    refused = PLAIN.model_copy(update={"guarantee": guarantee})
    text = words(shown(Audit(run=1, scorers=[refused])))
    assert "tone not audited: 5 labels are too few mean judge's mean (raw) 0.500" in text
    reason = "with at most 10% of the verdicts, with a probability of 95%: no verdict is sure"
    assert f"no guarantee that people disagree {reason}" in text
    assert [part.name for part in refused.sections] == ["mean", "guarantee"]
    assert "corrected," not in text


def test_below_the_head_line_stands_what_the_audit_means_for_use(audit_saying):
    head, use = shown(audit_saying(""), width=200).splitlines()[3:5]
    assert head.startswith("goal  corrected mean .58 [.51, .65], kappa")
    assert use == ("Gates up to 0.51 are met: the corrected mean is probably no lower (if labels drawn at random).")
    made = console()
    made.file, made.width = io.StringIO(), 200
    show_audit(audit_saying(""), 0, made, {"goal": MeanBound(">=", 0.5)})
    assert "\nA gate at 0.5 is met, as is any up to 0.51:" in made.file.getvalue()


def test_a_run_without_judges_says_so():
    assert "no scorer that asks a judge" in shown(Audit(run=1))


def test_of_many_labels_the_first_are_shown_and_the_others_counted():
    confusion = {f"label {number}": {f"label {number}": 1} for number in range(15)}
    found = PLAIN.model_copy(update={"agreement": {"alpha": Estimate(value=1)}, "confusion": confusion})
    text = shown(Audit(run=1, scorers=[found]), width=300)
    assert "label 11" in text
    assert "and 3 more labels" in text


def test_no_line_ends_in_blanks_and_a_long_reason_is_cut(audit_saying):
    [found] = audit_saying("").scorers
    long = [one.model_copy(update={"reason": "x" * 9_999}) for one in found.disagreements]
    text = shown(Audit(run=1, scorers=[found.model_copy(update={"disagreements": long})]))
    assert all(line == line.rstrip() for line in text.splitlines())
    assert 2 * 290 < text.count("x") < 2 * 310
    assert text.count("...") == 2


@settings(max_examples=settings.default.max_examples // 2)
@given(st.text(st.characters() | st.sampled_from("\x1b[]/\n\r\u202e\u2066"), max_size=20))
def test_nothing_of_a_recording_or_a_label_steers_the_terminal(audit_saying, text):
    out = shown(audit_saying(text, scorer=f"goal{text}"), width=400)
    assert all(printable(line) == line for line in out.split("\n"))
