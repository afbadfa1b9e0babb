"""Two runs beside each other, held against scipy, statsmodels, sacrebleu and cases counted by hand."""

import json
from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
import sacrebleu
import scipy.stats
import statsmodels.api as sm
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower

from judgekit.analysis.compare import Comparison, compare
from judgekit.errors import BudgetError, ConfigError
from judgekit.jobs.api import run
from judgekit.judges.judge import Judge
from judgekit.runs.results import Run
from judgekit.runs.rows import Input, ScorerRecord
from judgekit.score import Score
from judgekit.scorers.goal import AgentGoalAccuracyWithoutReference
from judgekit.scorers.text.translation import BLEU
from judgekit.traces.message import AIMessage, HumanMessage
from judgekit.traces.sample import Sample

HOSTILE = "<script>alert(1)</script>\x1b[2J\u202e"


@dataclass(frozen=True)
class Told:
    """Scores a sample by what its metadata says: a value, or a status, for there is nothing to find out."""

    name: str = "told"
    version: int = 1
    aggregate: str = "mean"

    async def ascore(self, sample: Sample, /) -> Score:
        told = sample.metadata[self.name]
        if told == "unpaid":
            raise BudgetError("it is spent")
        if isinstance(told, str):
            return getattr(Score, told)(self.name, f"it is {told}")
        return Score.scored(self.name, told, reason=f"{sample.id} is worth {told}", aggregate=self.aggregate)


def sample(sample_id: str, group: str | None = None, **told: float | str) -> Sample:
    return Sample.of([AIMessage(f"Hi {sample_id}")], id=sample_id, group=group, metadata=told)


def told(values: dict[str, float | str], **groups: str) -> Run:
    """A run in which each sample has this value, or comes to this status."""
    return run([sample(one, groups.get(one), told=value) for one, value in values.items()], [Told()])


def numbered(values, groups=None) -> Run:
    """A run of samples whose ids are their places."""
    groups = [None] * len(values) if groups is None else groups
    return run(
        [sample(f"s{n}", group, told=one) for n, (one, group) in enumerate(zip(values, groups, strict=True))], [Told()]
    )


def text(comparison: Comparison) -> str:
    return " ".join(str(comparison).split())


# --- the numbers


def test_scores_of_0_and_1_are_compared_by_the_exact_mcnemar_test():
    """7 fall, 1 rises: 2 x (1 + 8) / 2**8, by hand."""
    a, b = [1] * 7 + [0] + [1, 1, 0, 0], [0] * 7 + [1] + [1, 1, 0, 0]
    (one,) = compare(numbered(a), numbered(b))
    assert (one.test, one.p) == ("exact McNemar", 2 * 9 / 256)
    assert (one.pairs, one.worse, one.better) == (12, 7, 1)
    assert (one.a, one.b, one.difference) == (9 / 12, 3 / 12, -6 / 12)
    theirs = scipy.stats.ttest_1samp([*np.subtract(b, a), 1, -1], 0).confidence_interval()
    assert one.interval[:2] == pytest.approx(tuple(theirs))


def test_graded_scores_are_compared_by_a_permutation_test():
    a, b = [0.5, 0.25, 0.75, 1, 0.5, 0.25, 0], [0.75, 0.5, 0.5, 1, 1, 0.5, 0.5]
    (one,) = compare(numbered(a), numbered(b))
    theirs = scipy.stats.permutation_test(
        (a, b), lambda x, y: np.mean(y - x), vectorized=False, permutation_type="samples"
    )
    assert (one.test, one.worse, one.better) == ("sign-flip permutation", 1, 5)
    assert one.p == pytest.approx(theirs.pvalue)


def test_trials_of_one_task_are_compared_by_task():
    """The interval is that of regression on a constant with clusters; p goes through the signs of the tasks by hand."""
    draw = np.random.default_rng(4)
    groups = [f"t{number % 6}" for number in range(24)]
    a, b = draw.integers(0, 2, (2, len(groups))).tolist()
    (one,) = compare(numbered(a, groups), numbered(b, groups))
    gains = np.subtract(b, a)
    codes = [int(group[1:]) for group in groups]
    tasks = np.bincount(codes, weights=gains)
    added = np.abs(tasks).max() / 4  # as much as the task that differs most, in both directions
    theirs = sm.OLS([*gains, *[added] * 4, *[-added] * 4], np.ones(32)).fit(
        cov_type="cluster", cov_kwds={"groups": [*codes, *[6] * 4, *[7] * 4], "df_correction": True}, use_t=True
    )
    assert one.interval[:2] == pytest.approx(tuple(theirs.conf_int()[0]))
    flipped = [abs(np.dot(signs, tasks)) for signs in product((-1, 1), repeat=6)]
    assert one.test == "sign-flip permutation"
    assert one.p == pytest.approx(np.mean(np.array(flipped) >= abs(tasks.sum())))


def test_p_is_adjusted_for_the_number_of_scorers_and_decides_what_is_said():
    """Of 20 samples 1, 4 and 10 rise from 0 to 1; a fourth scorer has no pair, and is not counted."""
    names = ["few", "some", "many", "none"]

    def scored(rising):
        told = [dict(zip(names, [*(float(n < up) for up in rising), "skipped"], strict=True)) for n in range(20)]
        return run([sample(f"s{n}", **one) for n, one in enumerate(told)], [Told(name) for name in names])

    found = compare(scored([0, 0, 0]), scored([1, 6, 10]))
    theirs = multipletests([2 / 2**1, 2 / 2**6, 2 / 2**10], method="holm")[1]
    assert [one.p_holm for one in found][:3] == pytest.approx(list(theirs))
    assert [one.verdict for one in found] == ["no evidence", "no evidence", "better", "not compared"]
    assert found["none"].p_holm is None
    some = "some: 6 of 20 pairs better, 0 worse, 14 equal; no evidence of a difference; p is 0.0312 before Holm's adjustment"
    assert some in text(found)
    assert [one.verdict for one in compare(scored([1, 6, 10]), scored([0, 0, 0]))][2] == "worse"


def test_what_so_many_samples_could_have_shown_has_that_power():
    draw = np.random.default_rng(1)
    a, b = draw.random((2, 40)).tolist()
    (one,) = compare(numbered(a), numbered(b))
    effect = one.detectable / np.std(np.subtract(b, a), ddof=1)
    assert TTestPower().power(effect, nobs=40, alpha=0.05) == pytest.approx(0.8, abs=1e-6)
    caveat = f"; no evidence of a difference; one of {one.detectable:.2g} or more would likely"
    assert caveat in text(compare(numbered(a), numbered(b)))


@pytest.mark.parametrize("groups", [None, [f"t{number}" for number in range(5) for _ in range(3)]])
def test_what_no_p_of_so_few_could_show_is_not_said_to_have_been_detectable(groups):
    """Of 5 pairs, or groups of them, all of which rise, 2 of the 32 ways to change sides come as far."""
    b = [0.6, 0.61, 0.59, 0.6, 0.61] if groups is None else [0.6, 0.61, 0.59] * 4 + [0.6, 0.5, 0.5]
    (one,) = found = compare(numbered([0.1] * len(b), groups), numbered(b, groups))
    assert (one.p, one.detectable) == (2 / 32, None)
    assert "no evidence of a difference; " in text(found)
    assert "; there are too few pairs to show one (those of one group count once)" in text(found)


def test_few_changes_of_0_and_1_need_a_difference_that_mcnemar_would_show():
    """With 3 of 50 changed, t alone would call 0.097 detectable, which McNemar shows in 37 of 100 times."""
    (one,) = compare(numbered([0] * 3 + [1] * 47), numbered([1] * 50))
    assert scipy.stats.binom.sf(5, 50, one.detectable) == pytest.approx(0.8)


def test_an_interval_beside_0_does_not_go_without_a_word_where_p_is_not_small():
    """16 of 100 rise, 6 fall."""
    (one,) = found = compare(numbered([0] * 94 + [1] * 6), numbered([1] * 16 + [0] * 84))
    assert (one.verdict, one.p) == ("no evidence", pytest.approx(2 * scipy.stats.binom.cdf(6, 22, 0.5)))
    assert one.interval.low > 0
    caveat = "no evidence of a difference; the approximate interval excludes 0, but the verdict depends on p, "
    assert caveat in text(found)


def test_samples_that_did_not_change_leave_room_for_others_that_would():
    (one,) = found = compare(numbered([1, 0, 0.5] * 10), numbered([1, 0, 0.5] * 10))
    assert (one.verdict, one.difference, one.p, one.better, one.worse) == ("unchanged", 0, 1, 0, 0)
    assert one.interval.low < 0 < one.interval.high
    assert "unchanged" in text(found)


VALUES = st.sampled_from([0, 0.25, 1, "skipped", "failed"])


@hypothesis_settings(max_examples=hypothesis_settings.default.max_examples // 2)
@given(st.lists(st.tuples(VALUES, VALUES, st.sampled_from(["x", "y", None])), min_size=1, max_size=8))
def test_a_comparison_turns_with_its_sides(pairs):
    a, b = (numbered([pair[side] for pair in pairs], [pair[2] for pair in pairs]) for side in (0, 1))
    (there,), (back,) = compare(a, b), compare(b, a)
    assert (there.pairs, there.better, there.worse, there.p) == (back.pairs, back.worse, back.better, back.p)
    assert (there.a, there.b) == (back.b, back.a)
    assert sum(there.excluded.values()) + there.pairs == len(pairs)
    assert there.excluded == {(theirs, ours): times for (ours, theirs), times in back.excluded.items()}


# --- what is paired with what


def test_samples_are_paired_by_id_whatever_their_order():
    (one,) = found = compare(told({"x": 1, "y": 0, "z": 0.5}), told({"w": 0, "z": 1, "x": 0.5, "v": 1}))
    assert (found.pairs, one.pairs, one.a, one.b) == (2, 2, 0.75, 0.75)
    assert (found.unpaired_a, found.unpaired_b) == ((1, 0, ("y",)), (2, 0, ("w", "v")))
    assert "samples only in A: 1 ('y')" in text(found)
    assert "samples only in B: 2 ('w', 'v')" in text(found)


def test_samples_that_one_run_did_not_score_are_counted_and_change_no_mean():
    for a, b, said in (
        (1, "failed", "1 failed in B"),
        ("skipped", 0, "1 skipped in A"),
        ("abstained", "abstained", "1 abstained in both"),
        ("skipped", "failed", "1 skipped in A and failed in B"),
    ):
        (one,) = found = compare(told({"x": 1, "y": a}), told({"x": 0, "y": b}))
        assert (one.pairs, one.a, one.b) == (1, 1, 0)
        assert sum(one.excluded.values()) == 1
        assert f"told: pairs not compared: 1 ({said})" in text(found)


def test_a_sample_of_which_a_run_has_no_score_is_missing_there():
    a, b = (
        run([sample("x", one=1, other=other)], [Told("one"), Told("other")], concurrency=1) for other in (1, "unpaid")
    )
    found = compare(a, b)
    assert found["one"].pairs == 1
    assert found["other"].excluded == {("scored", "missing"): 1}
    assert "other: no sample has a value in both runs" in text(found)
    assert found.warnings == ("B was stopped early (it is spent): only what was scored until then is compared",)


def test_ids_that_stand_for_several_samples_are_paired_if_these_are_trials_of_a_task():
    def trials(*scores, group=None):
        return run([*(sample("task", group, told=score) for score in scores), sample("x", told=1)], [Told()])

    (one,) = found = compare(trials(1, 0, 1), trials(0, 0, 1))
    assert (one.pairs, found.unpaired_a, found.unpaired_b) == (1, (0, 3, ()), (0, 3, ()))
    assert "samples of A that are not paired: 3 (others have the same id" in text(found)
    (one,) = found = compare(trials(1, 0, 1, group="t"), trials(0, 0, 1, 1, group="t"))
    assert (one.pairs, found.unpaired_b) == (4, (1, 0, ("task",)))
    assert one.interval.method.endswith("2 groups")
    assert "paired in order: 3; compare the means of their groups, not single pairs" in found.warnings[0]


def test_the_order_of_trials_does_not_matter_to_the_mean():
    first = [1, 0, 0.5, 1, 1, 0, 0.25, 1]

    def found(second):
        sides = (
            [sample(str(n % 4), f"t{n % 4}", told=score) for n, score in enumerate(side)] for side in (first, second)
        )
        (one,) = compare(*(run(side, [Told()]) for side in sides))
        return one.difference, *one.interval[:2], one.p, one.detectable

    assert found([0, 1, 0.5, 0, 1, 1, 0.25, 0.75]) == pytest.approx(found([1, 1, 0.25, 0.75, 0, 1, 0.5, 0]))


def test_runs_without_a_sample_in_common_say_which_ids_they_have():
    with pytest.raises(ConfigError) as error:
        compare(told(dict.fromkeys("uvwxy", 1)), told({"z": 1}))
    assert str(error.value) == (
        "runs 1 (A) and 1 (B) have no sample in common, by id: "
        "samples only in A: 5 ('u', 'v', 'w', ...); samples only in B: 1 ('z')"
    )
    with pytest.raises(ConfigError, match=r"samples only in B: 1 \('z'\)"):
        compare(told({}), told({"z": 1}))
    with pytest.raises(ConfigError, match="they are empty"):
        compare(told({}), told({}))


def test_runs_without_a_scorer_in_common_say_which_they_have():
    samples = [sample("x", one=1, other=1)]
    with pytest.raises(ConfigError, match="no scorer in common: A has one; B has other"):
        compare(run(samples, [Told("one")]), run(samples, [Told("other")]))


# --- what else has to be known


def warnings(a: Run, b: Run) -> list[str]:
    return list(compare(a, b).warnings)


def test_nothing_is_warned_of_where_only_the_conversations_may_differ():
    assert warnings(told({"x": 1}), told({"x": 0})) == []


def test_scorers_that_are_not_what_they_were_are_warned_of():
    samples = [sample("x", told=1)]
    (found,) = warnings(run(samples, [Told()]), run(samples, [Told(version=2)]))
    assert found.startswith("told: the scorer changed between the runs")
    assert "version was " in found


def test_another_judge_is_warned_of():
    scorers = (AgentGoalAccuracyWithoutReference(Judge(f"openai/{model}")) for model in "ab")
    a, b = (changed(told({"x": 1}), scorers=(ScorerRecord.of(one),)) for one in scorers)
    (found,) = warnings(a, b)
    assert "judge.model was " in found
    assert found.index("openai/a") < found.index("openai/b")


def test_a_scorer_that_cannot_be_told_from_another_is_warned_of():
    class Odd:
        name = "told"
        ascore = Told().ascore

    samples = [sample("x", told=1)]
    for a, b in (([Odd()], [Told()]), ([Told()], [Odd()])):
        (found,) = warnings(run(samples, a), run(samples, b))
        assert found.startswith("told: it is unknown whether both runs scored in the same way: ")
        assert "make the scorer a dataclass" in found


def test_scorers_of_one_run_alone_are_named():
    samples = [sample("x", told=1, one=1, other=0)]
    a, b = run(samples, [Told(), Told("one")]), run(samples, [Told("other"), Told()])
    assert warnings(a, b) == ["scorers only in A are not compared: one", "scorers only in B are not compared: other"]


def changed(one: Run, **update: object) -> Run:
    return Run(one.store, one.record.model_copy(update=update))


def test_other_recordings_are_named():
    a, b = told({"x": 1}), told({"x": 1})
    file = Input.model_construct(path="a.jsonl", sha256="1" * 64)
    (found,) = warnings(changed(a, inputs=(file,)), changed(b, inputs=(file.model_copy(update={"sha256": "2" * 64}),)))
    assert found.endswith("A read a.jsonl (11111111), B read a.jsonl (22222222)")
    assert warnings(changed(a, inputs=(file,)), changed(b, inputs=(file.model_copy(update={"path": "moved"}),))) == []


def test_runs_that_are_not_whole_are_warned_of():
    a, b = told({"x": 1}), told({"x": 1})
    unread = changed(b, ended_at=None, notes=("1 record could not be read",))
    assert warnings(changed(a, stop_reason="interrupted"), unread) == [
        "A was stopped early (interrupted): only what was scored until then is compared",
        "B has not ended: it is running or was interrupted, and only what is scored so far is compared",
        "B: 1 record could not be read",
    ]


def test_a_run_that_is_compared_with_itself_is_warned_of(tmp_path):
    one = told({"x": 1})
    assert warnings(one, one) == ["A and B are the same run"]
    for _ in "ab":
        run([sample("x", told=1)], [Told()], store=tmp_path / "runs.sqlite")
    first, last = (Run.stored(number, tmp_path / "runs.sqlite") for number in (1, None))
    assert warnings(last, Run.stored(2, tmp_path / "runs.sqlite")) == ["A and B are the same run"]
    assert warnings(first, last) == []


def test_ids_that_are_but_places_in_a_file_are_warned_of():
    (found,) = warnings(told({"0": 1, "1": 0}), told({"0": 1, "1": 1}))
    assert found.startswith("all ids are positions in a file")
    assert warnings(told({"0": 1, "1": 0}), told({"1": 1, "0": 1})) == []


def test_pairs_of_different_groups_are_told():
    a = told(dict.fromkeys("wxyz", 1), w="g", x="g", y="h")
    (found,) = warnings(a, told(dict.fromkeys("wxyz", 0.5), w="g", x="h", z="g"))
    assert found == "pairs with different groups in A and B, for which the group in A counts: 1"


def test_pairs_of_different_domains_are_told():
    a, b = (
        run([Sample(id=one, domain=domain, metadata={"told": 1}) for one, domain in told.items()], [Told()])
        for told in ({"x": "airline", "y": "airline", "z": None}, {"x": "retail", "y": "airline", "z": "retail"})
    )
    (found,) = warnings(a, b)
    assert found == "pairs with different domains in A and B, whose ids may be the same by chance: 1"


# --- what is no mean


def said(*texts: str) -> Run:
    samples = [
        Sample.of(
            [HumanMessage(f"{n}"), AIMessage(said)], reference="the cat sat on the mat", id=f"s{n}", group=f"g{n // 2}"
        )
        for n, said in enumerate(texts)
    ]
    return run(samples, [BLEU()])


def test_what_is_no_mean_is_told_beside_the_means():
    a = ["the cat sat on the mat", "the cat", "a dog sat on the mat", "the cat sat on"] * 4
    b = ["the cat sat on a mat", "the cat sat on the mat", "a dog sat on the mat", "a cat sat on the mat"] * 4
    (one,) = found = compare(said(*a), said(*b))
    overall = one.overall
    references = [["the cat sat on the mat"] * 16]
    assert overall.name == "corpus BLEU"
    assert overall.a == pytest.approx(sacrebleu.corpus_bleu(a, references).score / 100)
    assert overall.b == pytest.approx(sacrebleu.corpus_bleu(b, references).score / 100)
    assert overall.interval.low < overall.b - overall.a < overall.interval.high
    assert overall.interval.method == "bootstrap, 8 groups"
    assert one.difference != pytest.approx(overall.b - overall.a, abs=0.01)
    assert "the table shows the mean of the single scores instead" in text(found)


def test_what_cannot_be_compared_says_why():
    samples = [sample(name, told=1) for name in "xy"]
    different = "the scores have different aggregates: mean, sys:intern"
    for names, why in ((("mean", "sys:intern"), different), (("nothing",) * 2, "no aggregate is called 'nothing'")):
        (one,) = found = compare(*(run(samples, [Told(aggregate=name)]) for name in names))
        assert (one.pairs, one.overall.interval) == (2, None)
        assert why in text(found)


def test_what_is_the_mean_by_another_name_is_not_said_to_be_another_number():
    scorer = Told(aggregate="judgekit.aggregates.total:mean")
    (one,) = found = compare(*(run([sample(str(n), told=n % up) for n in range(9)], [scorer]) for up in (1, 2)))
    assert (one.overall.a, one.overall.b) == (one.a, one.b)
    assert "is 0.000 in A and 0.444 in B" in text(found)
    assert "another number" not in text(found)


def test_many_pairs_are_not_drawn_again_and_again(monkeypatch):
    monkeypatch.setattr("judgekit.analysis.difference._PAIRS_REDRAWN", 3)
    assert "no interval: over 3 pairs take too long to resample" in text(compare(said(*"abcd"), said(*"abcd")))


# --- what is shown


def test_the_largest_losses_and_gains_come_first_with_both_rows():
    a = {"a": 0, "b": 0.25, "c": 1, "d": 1, "e": 1, "f": 0.5}
    b = {"f": 0.5, "e": 0, "d": 0.25, "c": 0.5, "b": 0.5, "a": 1}
    found = compare(told(a), told(b))
    worse = [(change.a.sample_id, change.a.score.value, change.b.score.value) for change in found.worse("told", 9)]
    assert worse == [("e", 1, 0), ("d", 1, 0.25), ("c", 1, 0.5)]
    ((before, after),) = found.better("told", 1)
    assert (before.score.reason, after.score.reason) == ("a is worth 0", "a is worth 1")
    assert found.better("told", 0) == []


def test_a_difference_by_rounding_is_none():
    (one,) = compare(told({"x": 0.1 + 0.2}), told({"x": 0.3}))
    assert (one.better, one.worse, one.verdict) == (0, 0, "unchanged")


def test_all_that_is_shown_is_harmless():
    odd = Told(f"told{HOSTILE}")

    def hostile(value, extra):
        return run([Sample(id=name, metadata={odd.name: value}) for name in (f"x{HOSTILE}", extra)], [odd])

    found = compare(hostile(1, f"a{HOSTILE}"), hostile(0, f"b{HOSTILE}"))
    shown = str(found)
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert r"\x1b[2J" in shown


def test_other_programs_get_all_of_it_as_json():
    a, b = {"x": 1, "y": 0.5, "z": "failed"}, {"x": 0, "y": 1, "z": 1, "w": 1}
    found = compare(told(a), told(b))
    told_as = json.loads(json.dumps(found.as_json(5), allow_nan=False))
    (one,) = told_as["scorers"]
    assert (told_as["pairs"], told_as["a"]["unmatched"], told_as["b"]["unmatched"]) == (3, 0, 1)
    assert (one["verdict"], one["a"], one["b"], one["p_holm"]) == ("no evidence", 0.75, 0.5, found["told"].p_holm)
    assert one["interval"] == {"low": -1, "high": 1, "method": "adjusted t"}
    assert one["excluded"] == [{"a": "failed", "b": "scored", "samples": 1}]
    sides = {
        side: {"index": 0, "value": value, "reason": f"x is worth {value}"} for side, value in {"a": 1, "b": 0}.items()
    }
    assert one["losses"] == [{"sample_id": "x", **sides}]
    assert [gain["sample_id"] for gain in one["gains"]] == ["y"]
