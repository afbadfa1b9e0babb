"""Strengths, held against choix, and how often their intervals cover."""

import choix
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgekit.stats.preference import bradley_terry

GAMES = st.lists(
    st.tuples(st.integers(0, 3), st.integers(1, 3), st.sampled_from([0, 0.5, 1])).map(
        lambda game: (game[0], (game[0] + game[1]) % 4, game[2])
    ),
    max_size=40,
)


def wins(games):
    """As choix has them, who knows no ties: every game twice, a tie won by each."""
    for one, other, score in games:
        yield from [(one, other)] * round(2 * score) + [(other, one)] * round(2 - 2 * score)


def connected(games):
    reached = np.eye(4, dtype=bool)
    for winner, loser in wins(games):
        reached[winner, loser] = True
    return np.linalg.matrix_power(reached, 4).all()


@settings(max_examples=settings.default.max_examples // 2)
@given(GAMES)
def test_strengths_are_those_of_choix_where_all_can_be_compared_and_none_where_not(games):
    found = bradley_terry(*zip(*games, strict=True)) if games else bradley_terry([], [], [])
    played = {player for game in games for player in game[:2]}
    if len(played) < 4:
        return
    assert (found is not None) == connected(games)
    if found is not None:
        theirs = choix.ilsr_pairwise(4, list(wins(games)), max_iter=1_000)
        assert [found.strengths[player] for player in range(4)] == pytest.approx(theirs, abs=1e-5)


def test_two_competitors_are_as_far_apart_as_the_logarithm_of_their_odds():
    found = bradley_terry(["a"] * 3 + ["b"], ["b"] * 3 + ["a"], [1, 1, 0.5, 0.5])
    assert found.beats("a", "b") == pytest.approx(0.75)
    assert found.strengths == {"a": pytest.approx(np.log(3) / 2), "b": pytest.approx(-np.log(3) / 2)}


@pytest.mark.parametrize(
    "games",
    [
        [],
        [("a", "b", 1), ("b", "c", 1), ("a", "c", 1)],  # nothing says how far down c is
        [("a", "b", 1), ("a", "b", 0), ("c", "d", 0.5)],  # two leagues
    ],
)
def test_parts_that_never_took_from_each_other_are_refused(games):
    assert bradley_terry(*([list(column) for column in zip(*games, strict=True)] or [[], [], []])) is None


@pytest.mark.parametrize(("first", "method"), [([1, 1, 1], None), ([1, 0, 1], "sandwich t"), ([0.5] * 3, None)])
def test_there_is_no_interval_where_all_say_the_same(first, method):
    found = bradley_terry(["a"] * 3, ["b"] * 3, first)
    intervals = [None] if found is None else found.intervals.values()
    assert [one and one.method for one in intervals] == [method] * len(intervals)


@pytest.mark.simulations
@pytest.mark.parametrize(("ties", "clustered"), [(0, False), (0.8, False), (0.8, True)])
def test_intervals_cover_as_often_as_they_say_with_ties_and_with_votes_on_one_question(ties, clustered):
    random = np.random.default_rng(11)
    true, questions, votes = np.array([0.8, 0.2, -1.0]), 60, 4
    covered, naive = [], []
    for _ in range(250):
        first = random.integers(0, 3, questions)
        second = (first + random.integers(1, 3, questions)) % 3
        likely = 1 / (1 + np.exp(true[second] - true[first]))
        tied = ties * np.minimum(likely, 1 - likely)  # taken from wins and losses alike
        drawn = random.random((1 if clustered else votes, questions))
        scores = (drawn < likely - tied / 2) + 0.5 * ((drawn >= likely - tied / 2) & (drawn < likely + tied / 2))
        votes_on = np.tile(np.arange(questions), votes)
        lists = first[votes_on].tolist(), second[votes_on].tolist(), np.broadcast_to(scores, (votes, questions)).ravel()
        for groups, found in ((votes_on, covered), (None, naive)) if clustered else ((None, covered),):
            intervals = bradley_terry(*lists, groups).intervals
            found += [
                intervals[player].low <= strength <= intervals[player].high for player, strength in enumerate(true)
            ]
    assert np.mean(covered) == pytest.approx(0.95, abs=0.03)
    assert not clustered or np.mean(naive) < 0.8


@pytest.mark.parametrize(
    ("first", "second", "scores", "told"),
    [
        (["a"], ["b", "c"], [1], "first, second and scores of one length, found 1, 2, 1"),
        (["a"], ["b"], [2], r"scores in \[0, 1\], found 2"),
        (["a"], ["a"], [1], "expected two different competitors, found 'a' compared with itself"),
    ],
)
def test_what_is_no_comparison_is_refused(first, second, scores, told):
    with pytest.raises(ValueError, match=told):
        bradley_terry(first, second, scores)
