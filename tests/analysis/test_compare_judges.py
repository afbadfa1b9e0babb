"""Judges held against each other, and against people."""

import random
from dataclasses import dataclass
from functools import partial

import krippendorff
import pytest
from sklearn.metrics import cohen_kappa_score

from judgekit import Sample, Score, run
from judgekit.analysis.compare_judges import compare_judges
from judgekit.analysis.labels import HumanLabel
from judgekit.errors import ConfigError
from judgekit.score import JudgeCall
from judgekit.stats.agreement import AgreementTables
from judgekit.traces.message import AIMessage

FAILED, ABSTAINED, SKIPPED = "failed", "abstained", "skipped"


@dataclass(frozen=True)
class Says:
    """A judge that says what stands here of each sample: a value, or why there is none."""

    name: str
    values: tuple[float | str, ...]
    calls: tuple[JudgeCall, ...] = ()

    async def ascore(self, sample: Sample, /) -> Score:
        said = self.values[int(sample.id)]
        if isinstance(said, str):
            return getattr(Score, said)(self.name, "no answer", calls=self.calls)
        label = f"{said:g}" if said in (0, 0.5, 1) else None
        return Score.scored(self.name, said, label=label, reason=f"{self.name} of {sample.id}", calls=self.calls)


def compared(*judges, human=(), groups=None, calls=()):
    """What comes of judges called a, b and so on; ``human`` says what they say of each sample."""
    names = "abcd"[: len(judges)]
    samples = [
        Sample.of([AIMessage(f"Hi {number}")], id=str(number), group=groups and groups[number])
        for number in range(len(judges[0]))
    ]
    made = run(samples, [Says(name, tuple(values), calls) for name, values in zip(names, judges, strict=True)])
    labels = [HumanLabel(sample=str(number), scorer="a", value=value) for number, value in enumerate(human)]
    return compare_judges(made, {name.upper(): name for name in names}, labels)


def test_what_a_judge_did_not_decide_is_counted_and_is_neither_agreement_nor_flip():
    found = compared([1, 0, FAILED, SKIPPED, 1, ABSTAINED], [1, 0, 1, SKIPPED, ABSTAINED, FAILED])
    (pair,) = found.pairs
    assert (found.samples, pair.a, pair.b, pair.sample_count, pair.flips, pair.closeness) == (6, "A", "B", 2, (), None)
    outcomes = ((FAILED, "scored"), (SKIPPED, SKIPPED), ("scored", ABSTAINED), (ABSTAINED, FAILED))
    assert {(one.a, one.b): one.samples for one in pair.excluded} == dict.fromkeys(outcomes, 1)
    assert pair.agreement["agreement"].value == 1
    assert found.judges[0].status_counts == {"scored": 3, "skipped": 1, "failed": 1, "abstained": 1}


def test_judges_that_never_decide_the_same_sample_have_no_agreement():
    (pair,) = compared([1, FAILED], [FAILED, 0], human=[1, 0]).pairs
    assert (pair.sample_count, pair.agreement, pair.closeness) == (0, {}, None)


@pytest.mark.parametrize(
    ("values", "name", "oracle"),
    [
        ((0, 1), "kappa", cohen_kappa_score),
        ((0, 0.5, 1), "weighted kappa", lambda a, b: cohen_kappa_score(list(map(str, a)), list(map(str, b)), weights="quadratic")),
    ],
)  # fmt: skip
def test_agreement_beyond_chance_is_that_of_scikit_learn(values, name, oracle):
    a = [values[(number * 7) % len(values)] for number in range(30)]
    b = [values[(number * 7 + (number % 4 == 0)) % len(values)] for number in range(30)]
    (pair,) = compared(a, b).pairs
    figure = pair.agreement[name]
    assert next(iter(pair.agreement)) == name
    assert figure.value == pytest.approx(oracle(a, b))
    assert figure.low < figure.value < figure.high
    assert not {"sensitivity", "specificity"} & pair.agreement.keys()  # neither of them is the truth
    assert len(pair.flips) == sum(one != other for one, other in zip(a, b, strict=True))


def test_flips_come_with_both_verdicts_and_what_people_say_the_furthest_apart_first():
    found = compared([0.2, 1, 0.5, 1], [0.3, 0, 0.5 + 1e-12, 1], human=[0.2, 1])
    (pair,) = found.pairs
    assert [(one.sample_id, one.human_value) for one in pair.flips] == [
        ("1", 1.0),
        ("0", 0.2),
    ]  # rounding flips nothing
    assert (pair.flips[0].a.reason, pair.flips[0].b.reason) == ("a of 1", "b of 1")
    assert (pair.flips[0].a.value, pair.flips[0].b.label) == (1.0, "0")


def test_the_better_judge_is_found_by_mcnemar_adjusted_for_all_pairs():
    right, wrong = [1, 0] * 10, [0, 1] * 10
    half = right[:12] + wrong[12:]  # wrong of 8
    found = compared(right, half, right, human=right)
    b, same, other = (pair.closeness for pair in found.pairs)
    assert (b.sample_count, b.a, b.b, b.a_closer, b.b_closer, b.test) == (20, 1.0, 0.6, 8, 0, "exact McNemar")
    assert (b.p, other.p, same.p) == (2 / 2**8, 2 / 2**8, 1)
    assert [one.p_holm for one in (b, other, same)] == [6 / 2**8, 6 / 2**8, 1]
    assert b.difference.value == pytest.approx(-0.4)
    assert b.difference.high < 0


def test_trials_of_one_task_are_one_piece_of_evidence():
    right = [1] * 12
    tasks = [f"task {number // 4}" for number in range(12)]
    found = compared(right, [0] * 8 + [1] * 4, human=right, groups=tasks)
    closer = found.pairs[0].closeness
    assert (closer.a_closer, closer.test, closer.p) == (8, "sign-flip permutation", 0.5)  # 2 tasks: 2 of 4 ways
    assert found.pairs[0].agreement["agreement"].method == "modified Wilson, 3 groups"


def test_on_values_that_are_no_labels_a_judge_is_as_good_as_it_is_close():
    a, b = [0.11, 0.42, 0.93, 0.71], [0.3, 0.6, 0.6, 0.7]
    human = [0.1, 0.4, 0.9, 0.7]
    found = compared(a, b, human=human)
    assert next(iter(found.pairs[0].agreement)) == "alpha"
    wanted = krippendorff.alpha([a, b], level_of_measurement="interval")
    assert found.pairs[0].agreement["alpha"].value == pytest.approx(wanted)
    closer = found.pairs[0].closeness
    assert (closer.a, closer.b) == (pytest.approx(1 - 0.07 / 4), pytest.approx(1 - 0.7 / 4))
    assert (closer.a_closer, closer.b_closer, closer.test) == (3, 1, "sign-flip permutation")


def test_labels_that_cannot_be_used_are_counted_by_judge():
    found = compared([1, FAILED, 0], [1, 0, 0], human=[1, 0, None, 1])
    assert [side.labeled for side in found.judges] == [1, 2]
    assert found.judges[0].unused_labels == {
        "drawn and left blank": 1,
        "failed by the judge": 1,
        "run 1 has no score for '3'": 1,
    }
    assert found.pairs[0].closeness.sample_count == 1
    assert found.judges[1].human_agreement["agreement"].value == 1


def test_the_time_of_a_request_is_the_median_of_those_that_were_sent_and_answered():
    calls = tuple(
        JudgeCall(judge="m", prompt="p", seconds=seconds, cached=cached, error=error)
        for seconds, cached, error in ((1, False, None), (2, False, None), (9, False, None), (0, True, None), (60, False, "LostError"))
    )  # fmt: skip
    a, _ = compared([1], [1], calls=calls).judges
    assert (a.seconds, a.requests, a.cached, a.answered) == (2, 4, 1, {"m": 4})
    assert compared([1], [1]).judges[0].seconds is None


@pytest.mark.parametrize(
    ("calls", "fell_back"),
    [
        ((JudgeCall(judge="openai/a", prompt="p", error="OverloadError"), JudgeCall(judge="openai/b", prompt="p")), 2),
        ((JudgeCall(judge="openai/a", prompt="p", error="OverloadError"), JudgeCall(judge="openai/a", prompt="p")), 0),
        ((JudgeCall(judge="openai/a", prompt="p"), JudgeCall(judge="openai/b", prompt="p")), 0),  # it escalates
        ((JudgeCall(judge="openai/a", prompt="p", error="OverloadError"),), 0),
    ],
)
def test_answers_of_another_judge_in_its_place_are_counted(calls, fell_back):
    assert compared([1, 0], [1, 0], calls=calls).judges[0].fell_back == fell_back


def test_a_scorer_that_the_run_has_not_is_named():
    made = run([Sample.of([AIMessage("Hi")], id="0")], [Says("tone", (1,))])
    with pytest.raises(ConfigError, match=r"no scorer of the run is called 'ton'. Did you mean 'tone'"):
        compare_judges(made, {"a": "ton", "b": "tone"})


def test_samples_that_people_labeled_as_not_applicable_are_among_those_that_the_agreement_is_of():
    found = compared([1, 0] * 6, [1, 1] * 6, human=[1, "n/a"] * 6)
    assert [side.labeled for side in found.judges] == [12, 12]
    assert found.judges[0].human_agreement["agreement"].value == 0.5
    assert found.pairs[0].closeness.sample_count == 6


def test_where_people_differ_a_judge_is_as_close_to_them_as_to_each_on_average():
    samples = [Sample.of([AIMessage(f"Hi {number}")], id=str(number)) for number in range(10)]
    made = run(samples, [Says("a", (1,) * 10), Says("b", (0,) * 10)])
    labels = [
        HumanLabel(sample=str(number), scorer="a", value=value, annotator=name)
        for number in range(10)
        for name, value in (("ann", 1), ("bob", 1), ("eve", 0))
    ]
    closer = compare_judges(made, {"A": "a", "B": "b"}, labels).pairs[0].closeness
    assert (closer.sample_count, closer.a, closer.b) == (10, pytest.approx(2 / 3), pytest.approx(1 / 3))


@pytest.mark.simulations
def test_the_best_of_several_equal_prompts_is_seldom_found_better(monkeypatch):
    monkeypatch.setattr(AgreementTables, "of", partial(AgreementTables.of, draws=20))  # which are not looked at
    dice, found = random.Random(0), 0  # noqa: S311 - judges, and no secrets
    for _ in range(40):
        human = [dice.random() < 0.5 for _ in range(40)]
        judges = [[value ^ (dice.random() < 0.2) for value in human] for _ in range(4)]
        pairs = compared(*judges, human=human).pairs
        found += any(pair.closeness.p_holm < 0.05 for pair in pairs)
    assert found <= 4  # 5 % and more than one standard error; without the adjustment, it would be about 8
