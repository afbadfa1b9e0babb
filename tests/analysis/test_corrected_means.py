"""Corrected means: where they stand, and what is said of their use."""

import io
import re

from hypothesis import given
from hypothesis import strategies as st

from judgekit import Run, Score
from judgekit.aggregates.total import Total
from judgekit.analysis.corrected_means import MeanBound, describe_correction, gate_fitness, mean_bounds, run_corrections
from judgekit.analysis.gates import Gate, GateResults, check_gates
from judgekit.reports.html import html_report
from judgekit.reports.markdown import markdown_report
from judgekit.reports.summary import show_summary
from judgekit.runs.audit_records import Correction
from judgekit.runs.intervals import Estimate
from judgekit.runs.summary import Summary
from judgekit.terminal import console

REFUSED = Correction(unavailable_reason="only 5 labeled samples; at least 10 are needed")


def between(low: float | None, high: float | None = 1, assumes: str = "") -> Correction:
    figure = Estimate(value=0.5, low=low, high=high)
    return Correction(method="PPI++", corrected=figure, assumptions=assumes)


# --- the sentence


def test_a_sentence_says_what_a_corrected_mean_is_good_enough_for():
    cases = [
            (between(0.268), MeanBound(">=", 0.7), "at 0.7 is not met: the corrected mean may be as low as 0.27; gates up to 0.26 are met."),
            (between(0.9), MeanBound(">=", 0.7), "at 0.7 is met, as is any up to 0.9: the corrected mean is probably no lower."),
            (between(0.7), MeanBound(">=", 0.7), "at 0.7 is met, as is any up to 0.7:"),  # as a gate with >=
            (between(0.7), MeanBound(">", 0.7), "above 0.7 is not met: the corrected mean may be as low as 0.70; gates up to 0.69"),
            (between(0.7), MeanBound(">", 0.5), "above 0.5 is met, as is any up to 0.69:"),
            (between(0.69996), MeanBound(">=", 0.7), "at 0.7 is not met: the corrected mean may be as low as 0.69996; gates up to 0.69 are met."),
            (between(0.7049), MeanBound(">=", 0.703), "at 0.703 is met, as is any up to 0.704:"),
            (between(0.004), MeanBound(">=", 0.7), "at 0.7 is not met: the corrected mean may be as low as 0.00."),
            (between(0.1, 0.34), MeanBound("<=", 0.3), "at no more than 0.3 is not met: the corrected mean may be as high as 0.34; gates down to 0.34"),
            (between(0.1, 0.234), MeanBound("<", 0.3), "below 0.3 is met, as is any down to 0.24: the corrected mean is probably no higher."),
            (between(None), MeanBound(">=", 0.7), "at 0.7 is not met: the corrected mean has no 95 % interval."),
            (REFUSED, MeanBound(">=", 0.7), "at 0.7 is not met: there is no corrected mean: only 5 labeled samples; at least 10 are needed."),
            (between(0.8, 1, "a is b; c holds"), MeanBound(">=", 0.7), "at 0.7 is met, as is any up to 0.8: the corrected mean is probably no lower (if a is b)."),
            (between(0.2, 1, "a is b"), MeanBound(">=", 0.7), "at 0.7 is not met: the corrected mean may be as low as 0.20; gates up to 0.2 are met (if a is b)."),
        ]  # fmt: skip
    for correction, demand, told in cases:
        assert gate_fitness(correction, demand).text.startswith(f"A gate {told}")


number = st.floats(0, 1) | st.integers(0, 1_000).map(lambda one: one / 1_000)


@given(number, number, st.sampled_from(["<=", "<", ">", ">="]))
def test_the_sentence_is_as_true_as_the_gates(edge, bound, operator):
    side = "lower" if ">" in operator else "upper"
    correction = between(edge, edge)

    def met(bound: str) -> bool:
        gate = Gate.parse(f"a.corrected.{side} {operator} {bound}", ["a"])
        return gate.result(Summary(), {}, {"a": correction}).met

    fitness = gate_fitness(correction, MeanBound(operator, bound))
    said = fitness.text
    assert fitness.met == (" is met, " in said) == met(f"{bound:.17f}")
    for reach in re.findall(r"(?:up|down) to ([\d.e-]+\d)", said):
        assert met(reach)
        assert " is not met: " in said or (
            float(reach) >= bound - 1e-9 if ">" in operator else float(reach) <= bound + 1e-9
        )
    for shown in re.findall(r"may be as (?:low|high) as (\d\.\d+)", said):  # not on the other side of the bound
        assert not gate_fitness(between(float(shown), float(shown)), MeanBound(operator, bound)).met


def test_without_a_gate_nobody_asks_whether_one_is_met():
    """A question about 0.7, which nobody had asked, stood below each audit."""
    fitness = gate_fitness(between(0.268), None)
    assert fitness.text == "Gates up to 0.26 are met: the corrected mean is probably no lower."
    assert fitness.met is None
    for nothing_to_say in (REFUSED, between(None), between(0.004)):
        assert gate_fitness(nothing_to_say, None).text == ""


def test_the_strictest_gate_of_a_run_on_a_scorer_is_what_its_mean_must_meet(audited_run):
    run, _ = audited_run
    for gates, demand in (
        ([], None),
        (["failed <= 1%", "tone.n >= 10", "tone.failed <= 0", "greeted >= 0.2"], None),
        (["tone >= 0.6"], MeanBound(">=", 0.6)),
        (["tone.corrected.lower > 60%", "tone >= 0.6"], MeanBound(">", 0.6)),
        (["tone >= 0.5", "tone.corrected.lower >= 0.8", "tone.lower >= 0.7"], MeanBound(">=", 0.8)),
        (["tone.upper <= 0.9", "tone.corrected <= 0.8"], MeanBound("<=", 0.8)),
        (["tone == 0.5", "tone < 0.9", "tone > 0.1"], MeanBound(">", 0.1)),
    ):
        gated = Run(run.store, run.record.model_copy(update={"options": {"gates": gates}}))
        assert mean_bounds(gated).get("tone") == demand


# --- where it stands


def test_a_gate_on_a_raw_mean_that_the_report_corrects_says_so(audited_run):
    run, found = audited_run
    gates = ["tone >= 0.6", "tone.lower >= 0.1", "tone.n >= 24", "greeted >= 0.5", "tone.corrected >= 0.6"]
    raw, lower, *others = check_gates(run, gates).gates
    corrected = f"; the report's mean is the corrected one, {found.scorers[0].correction.corrected}"
    assert (raw.met, raw.value_text) == (True, f"found 0.667 (raw, n=24 of 24){corrected}")
    assert "(raw, modified Wilson, " in lower.value_text
    assert lower.value_text.endswith(corrected)
    assert not any("raw" in gate.value_text for gate in others)
    (page,) = [line for line in markdown_report(run, check_gates(run, gates[:1])) if "tone >= 0.6" in line]
    assert "raw, n=24 of 24" in page


def words(run: Run) -> str:
    on = console()
    on.file = io.StringIO()
    show_summary(run.summary, on, corrections=run_corrections(run))
    return " ".join(on.file.getvalue().split())


def test_the_corrected_mean_is_the_number_of_a_scorer_and_the_judges_own_stands_beside_it_as_raw(audited_run):
    run, found = audited_run
    assert run_corrections(run) == {"tone": found.scorers[0].correction}
    low, high = found.scorers[0].correction.corrected.low, found.scorers[0].correction.corrected.high
    told = words(run)
    assert "scorer mean 95 % interval raw n skipped failed" in told
    assert f"tone 0.333 {low:.3f} to {high:.3f} 0.667 24 of 24" in told  # 8 and 16 of 24
    greeted = run.summary["greeted"].interval
    assert f"greeted 1.000 {greeted.low:.3f} to 1.000 24 of 24" in told  # 12 tasks; it asks no judge
    assert "tone: the mean is corrected (labels alone), raw is the judge's own" in told
    assert re.search(r"by domain tone \(raw\) greeted", told)
    assert "k = 1 to 2 trials of each: raw pass^k" in told
    assert "k = 1 to 2 trials of each: pass^k 1.000" in told

    text = "".join(markdown_report(run, GateResults()))
    assert "| scorer | mean | 95 % interval | raw | n |" in text
    assert f"| `tone` | 0.333 | {low:.3f} to {high:.3f} | 0.667 | 24 of 24 |" in text
    assert f"| `greeted` | 1.000 | {greeted.low:.3f} to 1.000 |  | 24 of 24 |" in text
    assert "- `tone`: `Gates up to " in text

    page = "".join(html_report(run))
    numbers = [re.findall(r"<bdi>(.*?)</bdi>", row)[:4] for row in re.findall(r"<tr><th scope=\"row\">.*", page)]
    assert numbers[:2] == [
        ["tone", "0.333", f"{low:.3f} to {high:.3f}", "0.667"],
        ["greeted", "1.000", f"{greeted.low:.3f} to 1.000", ""],
    ]


def test_without_an_audit_the_raw_mean_stands_alone(run_of):
    run = run_of([Score.scored("f1", 0.5), Score.scored("f1", 1)])
    assert run_corrections(run) == {}
    page = "".join(html_report(run)).split("<script")[0]
    for text in (words(run), "".join(markdown_report(run, GateResults())), page):
        assert "0.750" in text
        assert "raw" not in text
        assert "Gates up to" not in text


def test_a_judge_that_was_not_audited_has_neither_a_corrected_mean_nor_a_refusal(audited_run):
    run, _ = audited_run
    for path in run.audits_folder.glob("*.json"):
        path.unlink()
    assert run_corrections(run) == {}


def test_what_refuses_a_correction_is_said_beside_the_raw_mean(run_with_audit):
    run = run_with_audit("kappa")
    assert "a 1.000 0.207 to 1.000 1 of 1" in words(run)  # Wilson of 1 in 1
    assert "a: not corrected: all are labeled" in words(run)
    assert "- `a`: `not corrected: all are labeled`\n" in "".join(markdown_report(run, GateResults()))


def test_a_number_that_is_no_mean_is_not_corrected(run_with_audit):
    run = run_with_audit("kappa")
    run._counts.summary.scorers["a"].overall = Total(0.5, "macro mean")
    assert run_corrections(run)["a"].unavailable_reason == "only a mean can be corrected, and a reports macro mean"


def test_how_a_mean_was_corrected_is_said_with_what_it_assumes():
    assert describe_correction(between(0.1)) == "the mean is corrected (PPI++), raw is the judge's own"
    assert describe_correction(between(0.1, 1, "a is b")).endswith("the judge's own; assumes: a is b")
    assert describe_correction(REFUSED) == f"not corrected: {REFUSED.unavailable_reason}"


def test_an_audit_of_a_run_in_memory_gives_its_page_the_corrected_mean(run_of, audit_saying):
    run = run_of([Score.scored("goal", 0.5)])
    page = "".join(html_report(run, audit_saying("")))
    assert re.search(r"<bdi>goal</bdi></th><td><bdi>0.581</bdi></td>.*?<td><bdi>0.500</bdi></td>", page)
