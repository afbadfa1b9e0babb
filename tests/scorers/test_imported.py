"""Scores that came with a recording."""

import pytest

from judgekit.analysis.audit import audit
from judgekit.analysis.labels import recorded_labels
from judgekit.errors import ConfigError
from judgekit.jobs.api import run
from judgekit.runs.rows import ScorerRecord
from judgekit.scorers.imported import Imported
from judgekit.traces.recording import Label
from judgekit.traces.sample import Sample
from judgekit.traces.trace import Trace


def sample(*labels: Label, id: str = "s1") -> Sample:
    return Sample(id=id, trace=Trace(labels=labels))


def judged(value, **known) -> Label:
    return Label("quality", value, source="judge", **known)


def test_a_label_is_a_score_and_what_is_not_in_0_to_1_needs_a_scale():
    cases = [
        (True, {}, 1.0),
        (0.25, {}, 0.25),
        ("Fail", {}, 0.0),
        ("0.5", {}, 0.5),
        ("good", {"Good": 1, "bad": 0}, 1.0),
        (4, {"1": 0, "4": 0.75, "5": 1}, 0.75),
        ("n/a", {}, "skipped"),
        ("unsure", {"unsure": "abstained"}, "abstained"),
        (4, {}, "failed"),
        ("good", {}, "failed"),
    ]
    for value, scale, expected in cases:
        score = Imported("quality", scale=scale).score(sample(judged(value, reason="So.")))
        assert (score.status if score.value is None else score.value) == expected
        assert score.scorer == "quality"
        if expected == "failed":
            assert score.reason.startswith(
                f"the recorded label {value!r} has no value in [0, 1]: give it one, such as scale="
            )
        else:
            assert score.reason == "So."


def test_the_verdict_of_an_imported_judge_costs_nothing_and_names_its_model():
    score = Imported("quality").score(sample(judged("yes", annotator="gpt-4.1")))
    (call,) = score.calls
    assert (call.judge, call.model, call.cached, score.usd_paid, score.label) == (
        "gpt-4.1",
        "gpt-4.1",
        True,
        0.0,
        "yes",
    )
    (unnamed,) = Imported("quality").score(sample(judged(1))).calls
    assert (unnamed.judge, unnamed.model) == ("imported judge", None)


def test_labels_of_other_sources_are_left_alone_and_named():
    mixed = sample(Label("quality", 1, source="human"), Label("other", 1, source="judge"))
    score = Imported("quality").score(mixed)
    assert (score.status, score.reason) == (
        "skipped",
        "no label 'quality' of source judge was recorded; there is one with source=human",
    )
    human = Imported("quality", source="human")
    assert (human.score(mixed).value, human.score(mixed).calls) == (1.0, ())
    assert [ScorerRecord.of(one).judged for one in (human, Imported("quality"))] == [False, True]


def test_several_labels_of_a_name_give_their_mean_and_all_are_told():
    labels = [Label("quality", value, source="human", annotator=name) for value, name in ((1, "Ana"), (0, "Bo"))]
    score = Imported("quality", source="human").score(sample(*labels))
    assert (score.value, score.label, score.reason) == (0.5, None, "the mean of 2 recorded labels.")
    assert score.details == {"labels": [{"value": 1, "annotator": "Ana"}, {"value": 0, "annotator": "Bo"}]}


def test_an_imported_judge_is_audited_against_human_labels_of_the_same_name():
    """It says 1 of every sample; people agree on three of four."""
    samples = [
        sample(judged(1), Label("quality", at % 4 > 0, source="human", annotator="Ana"), id=f"s{at}")
        for at in range(40)
    ]
    made = run(samples, [Imported("quality")])
    (found,) = audit(made, recorded_labels(made, {})).scorers
    assert (found.scorer, found.sample_count, found.agreement["agreement"].value) == ("quality", 40, 0.75)
    assert (found.judge_mean.value, found.correction.corrected.value) == (1.0, 0.75)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"label": ""}, "label must be the name of a recorded label"),
        ({"label": "a", "source": "robot"}, "source"),
        (
            {"label": "a", "scale": {"good": 5}},
            r"scale: 'good' must be a number in \[0, 1\], skipped or abstained, found 5",
        ),
    ],
)
def test_options_that_make_no_sense_are_refused(options, said):
    with pytest.raises(ConfigError, match=said):
        Imported(**options)
