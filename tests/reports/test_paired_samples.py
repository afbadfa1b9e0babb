"""Lists of compared samples, checked against a plain pass over all of them."""

from itertools import product

import pytest

from judgekit import Sample, Score, compare, run
from judgekit.reports.paired_samples import differing, paired_list, sides_of

VALUES = (0.0, 0.5, 1.0, None)
NUMBER = len(VALUES) ** 2


class Fixed:
    """Scores samples with given values, and skips those without one."""

    def __init__(self, values: dict[str, float | None]) -> None:
        self.name, self.values = "fixed", values

    async def ascore(self, sample: Sample, /) -> Score:
        value = self.values[sample.id]
        return Score.skipped("fixed", reason="none") if value is None else Score.scored("fixed", value, reason="given")


def scored(values: dict[str, float | None]):
    samples = [Sample.of([{"role": "user", "content": f"asks {sample_id}"}], id=sample_id) for sample_id in values]
    return run(samples, [Fixed(values)])


BEFORE = {f"s{at}": before for at, (before, _) in enumerate(product(VALUES, VALUES))} | {"only a": 0.0}
AFTER = {"only b": 1.0} | {f"s{at}": after for at, (_, after) in enumerate(product(VALUES, VALUES))}


@pytest.fixture(scope="module")
def comparison():
    return compare(scored(BEFORE), scored(AFTER))


def change(sample_id: str) -> float | None:
    before, after = BEFORE.get(sample_id), AFTER.get(sample_id)
    return None if before is None or after is None else after - before


def listed(comparison, **filters):
    return [(pair["a"] or pair["b"])["rows"][0]["sample_id"] for pair in paired_list(comparison, filters)["samples"]]


IN_ORDER = [*AFTER, "only a"]
KEPT = {
    "": lambda _: True,
    "worse": lambda sample_id: (change(sample_id) or 0) < 0,
    "better": lambda sample_id: (change(sample_id) or 0) > 0,
    "changed": lambda sample_id: (change(sample_id) or 0) != 0,
    "left out": lambda sample_id: sample_id in BEFORE and sample_id in AFTER and change(sample_id) is None,
    "one side": lambda sample_id: sample_id not in BEFORE or sample_id not in AFTER,
}


@pytest.mark.parametrize("kind", KEPT)
def test_what_changed_is_listed_in_any_order(comparison, kind):
    expected = list(filter(KEPT[kind], IN_ORDER))
    for named in ({}, {"scorer": "fixed"}):
        assert listed(comparison, change=kind, **named) == expected
    for sort, sign in (("drop", 1), ("rise", -1)):
        gains = {sample_id: change(sample_id) for sample_id in expected}
        ordered = sorted(expected, key=lambda sample_id: (gains[sample_id] is None, sign * (gains[sample_id] or 0)))
        assert listed(comparison, change=kind, sort=f"{sort}:fixed") == ordered


def test_other_filters_and_texts_hold_for_the_sample_in_b_or_else_in_a(comparison):
    assert listed(comparison, value=">0.9") == [sample_id for sample_id, value in AFTER.items() if value == 1]
    assert listed(comparison, value="0", change="worse") == ["s4", "s8"]
    assert listed(comparison, q="asks only") == ["only b", "only a"]


def test_pairs_have_the_scores_of_both_runs_and_start_around_a_sample(comparison):
    page = paired_list(comparison, {}, number=-1 - NUMBER)
    assert (page["start"], page["next"], page["total"]) == (0, None, NUMBER + 2)
    only_b, *pairs, only_a = page["samples"]
    assert (only_b["a"], only_a["b"], only_a["number"]) == (None, None, -1 - NUMBER)
    assert [[pair[side]["rows"][0]["score"]["value"] for side in "ab"] for pair in pairs] == [
        [*values] for values in product(VALUES, VALUES)
    ]
    assert [sides_of(comparison, number) for number in (0, 1, -1 - NUMBER)] == [(None, 0), (0, 1), (NUMBER, None)]


def test_samples_that_differ_over_runs_come_with_the_largest_difference_first(comparison):
    third = compare(comparison.a, scored(BEFORE | {"s0": 0.5, "s5": 1.0}))
    found = differing([comparison, third], 3)
    assert [sample["scores"]["fixed"] for sample in found["samples"]] == [
        [0.0, 1.0, 0.0],
        [1.0, 0.0, 1.0],
        [0.0, 0.0, 0.5],
    ]
    assert [sample["id"] for sample in found["samples"]] == ["s2", "s8", "s0"]
    assert found["samples"][0]["numbers"] == [2, 3, 2]
    changed = {sample_id for sample_id in BEFORE if change(sample_id)} | {"s0", "s5"}
    assert found["total"] == len(changed)
