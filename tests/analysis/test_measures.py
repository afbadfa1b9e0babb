"""What labeled samples say of a judge, against other implementations and plain sums."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from judgekit.analysis.audit import audit
from judgekit.analysis.labels import HumanLabel
from judgekit.score import JudgeCall, Score

pytestmark = pytest.mark.usefixtures("quick")
CALLS = [JudgeCall(judge="openai/m-1", prompt="tone@1")]
SCALE = {"lacking": 0.0, "fitting": 1.0, "none": "skipped"}
answer = st.sampled_from(["lacking", "fitting", "fitting", "none"])
samples = st.lists(st.tuples(answer, st.lists(answer, max_size=4)), min_size=3, max_size=40)


def given_by(verdict: str) -> Score:
    if verdict == "none":
        return Score.skipped("tone", "it does not apply", calls=CALLS)
    return Score.scored("tone", SCALE[verdict], label=verdict, calls=CALLS)


@given(samples, st.sampled_from([None, "random", "stratified", "convenience"]))
def test_each_sample_counts_once_shared_among_what_people_say_in_all_figures(judged, drawn_samples, drawn):
    run = judged([given_by(verdict) for verdict, _ in drawn_samples], scale=SCALE)
    labels = [
        HumanLabel(sample=f"s{at}", scorer="tone", value=value, annotator=f"p{person}", selection=drawn)
        for at, (_, said) in enumerate(drawn_samples)
        for person, value in enumerate(said)
    ]
    (found,) = audit(run, labels, guarantee=0.2).scorers
    labeled = [(verdict, said) for verdict, said in drawn_samples if said]
    assert (found.sample_count, found.labels) == (len(labeled), len(labels))
    if not labeled:
        return
    weights = [1.0] * len(labeled)
    if found.selection == "stratified":
        has_skipped = any(verdict == "none" for verdict, _ in labeled)
        every = [verdict for verdict, _ in drawn_samples if verdict != "none" or has_skipped]
        if min(every.count(verdict) for verdict in every) < 2:  # a verdict of one sample goes with another one
            return
        chosen = [verdict for verdict, _ in labeled]
        weights = [every.count(verdict) / chosen.count(verdict) for verdict in chosen]
    rows = [
        (value, verdict, 1 / len(said), weight / len(said))
        for (verdict, said), weight in zip(labeled, weights, strict=True)
        for value in said
    ]
    human, judge, shares, weighted = (np.asarray(column) for column in zip(*rows, strict=True))
    equal = human == judge

    def figure(name: str) -> float:
        value = found.agreement[name].value
        return math.nan if value is None else value

    def mean(of: np.ndarray) -> float:
        return float((weighted * equal)[of].sum() / weighted[of].sum()) if of.any() else math.nan

    if len({*human, *judge}) > 1:
        assert figure("kappa") == pytest.approx(cohen_kappa_score(human, judge, sample_weight=weighted), abs=1e-9)
    assert figure("agreement") == pytest.approx(mean(np.ones(len(rows), bool)))
    assert figure("sensitivity") == pytest.approx(mean(human == "fitting"), nan_ok=True)
    assert figure("specificity") == pytest.approx(mean(human == "lacking"), nan_ok=True)
    expected = {(one, other): shares[(human == one) & (judge == other)].sum() for one in SCALE for other in SCALE}
    table = {(one, other): times for one, row in found.confusion.items() for other, times in row.items()}
    assert {pair: expected[pair] for pair in table} == pytest.approx(table)
    assert sum(table.values()) == pytest.approx(len(labeled))
    counts = found.counts
    assert (counts.tp, counts.fn) == pytest.approx((expected["fitting", "fitting"], expected["fitting", "lacking"]))
    assert (counts.fp, counts.tn) == pytest.approx((expected["lacking", "fitting"], expected["lacking", "lacking"]))
    differing = [verdict for verdict, said in labeled if {*said} != {verdict}]
    assert len(found.disagreements) == len(differing)
    if found.correction.method == "labels alone" and found.selection == "all":
        applying = [[SCALE[value] for value in said if value != "none"] for _, said in labeled]
        parts = [len(values) / len(said) for values, (_, said) in zip(applying, labeled, strict=True)]
        total = sum(part * sum(values) / len(values) for part, values in zip(parts, applying, strict=True) if values)
        assert found.correction.corrected.value == pytest.approx(total / sum(parts))
