"""The mean over domains."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.aggregates.domains import domain_means, macro_mean, mean_of_means
from judgekit.aggregates.total import Total
from judgekit.score import Score


def scored(*pairs: tuple[str | None, float]) -> list[Score]:
    return [Score.scored("s", value, details={} if domain is None else {"domain": domain}) for domain, value in pairs]


def test_each_domain_counts_once():
    found = macro_mean(scored(("law", 1), ("law", 0.5), ("law", 0.75), ("medicine", 0.25)))
    note = "over 2 domains with 1 to 3 scored each"
    assert found == Total(0.5, "macro mean", note, {"medicine": 0.25, "law": 0.75})


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 8)), min_size=1, max_size=20), st.randoms())
def test_it_is_the_mean_of_the_means_in_any_order(pairs, random):
    eighths = [(domain, eighth / 8) for domain, eighth in pairs]
    domains = {domain for domain, _ in pairs}
    means = [Fraction(sum(v for d, v in pairs if d == one), 8 * sum(d == one for d, _ in pairs)) for one in domains]
    total = macro_mean(scored(*eighths))
    assert total.value == pytest.approx(float(sum(means) / len(means)), abs=1e-15)
    assert total == macro_mean(scored(*random.sample(eighths, len(eighths))))
    assert mean_of_means(domain_means(eighths)) == total.value


def test_of_many_domains_the_lowest_are_shown():
    found = macro_mean(scored(*((f"domain {index:02}", index / 16) for index in range(16, 4, -1))))
    assert found.note == "over 12 domains with 1 scored each, of which the lowest 8 are shown"
    assert list(found.metrics.values()) == [index / 16 for index in range(5, 13)]


def test_one_domain_is_told():
    assert macro_mean(scored(("law", 0.5))).note == "over 1 domain with 1 scored each"


@pytest.mark.parametrize("nameless", [None, ""])
def test_it_is_undefined_where_a_domain_is_not_known(nameless):
    found = macro_mean(scored(("law", 0.5), (nameless, 1)))
    assert found == Total(None, "macro mean", "undefined: 1 of 2 scores have no domain")


def test_names_of_domains_are_harmless_and_whole():
    found = macro_mean(scored(("a\nb", 0.25), ("x" * 1_000, 0.5), ("法律", 1)))
    assert list(found.metrics) == ['"a\\nb"', f'"{"x" * 1_000}"', "法律"]
