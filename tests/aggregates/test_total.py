"""How scores become one number."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgekit.aggregates.total import (
    AGGREGATES,
    PackedScores,
    Total,
    compute_total,
    load_aggregate,
    mean,
    reduced_for_aggregate,
)
from judgekit.errors import ConfigError
from judgekit.score import JudgeCall, Score
from judgekit.scorers.behavior import MaxMessages, MaxRepeatedCalls
from judgekit.scorers.classification.answers import AnswerMatch
from judgekit.scorers.classification.labels import Classification
from judgekit.scorers.generalization import Adaptability
from judgekit.scorers.text.matches import ExactMatch
from judgekit.scorers.text.translation import BLEU, CHRF, TER
from judgekit.traces.message import AIMessage, HumanMessage, ToolCall
from judgekit.traces.sample import Sample


@pytest.fixture(autouse=True)
def own_code(monkeypatch) -> None:
    """All functions are the user's own."""
    monkeypatch.setattr("judgekit.registry._named", {"*"})


def scored(values: list[float]) -> list[Score]:
    return [Score.scored("s", value) for value in values]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.randoms())
def test_the_mean_is_exact_and_its_order_does_not_matter(values, random):
    shuffled = random.sample(values, len(values))
    assert mean(scored(values)) == mean(scored(shuffled))
    assert math.isclose(mean(scored(values)), sum(map(Fraction, values)) / len(values), abs_tol=1e-300)


def test_the_known_aggregates_are_found_by_name():
    homes = {
        name: f"{found.__module__}:{found.__qualname__}" for name in AGGREGATES for found in [load_aggregate(name)]
    }
    assert homes == {name: home.path for name, home in AGGREGATES.items()}
    assert load_aggregate("mean") is mean


def test_a_function_of_any_package_is_found_by_its_path(tmp_path, monkeypatch):
    (tmp_path / "their_metrics.py").write_text("def lowest(scores):\n    return min(one.value for one in scores)\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert load_aggregate("their_metrics:lowest")(scored([0.5, 0.25, 1])) == 0.25
    assert load_aggregate("judgekit.aggregates.total:mean") is mean


KNOWN = "answer_match, classification, corpus_bleu, corpus_chrf, corpus_ter, macro_mean, mean, within_budget"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("meen", "no aggregate is called 'meen'. Did you mean 'mean'? Known: " + KNOWN),
        ("", "no aggregate is called ''. Known: " + KNOWN),
        ("no_such_package.m:f", "the aggregate 'no_such_package.m:f' cannot be loaded: No module named 'no_such_package'"),
        ("math:no_such_function", "the aggregate 'math:no_such_function' cannot be loaded: module 'math' has no attribute 'no_such_function'"),
        (".m:f", "the aggregate '.m:f' cannot be loaded: the 'package' argument is required to perform a relative import for '.m'"),
        ("math:pi", "the aggregate 'math:pi' cannot be loaded: it is not a function but 3.141592653589793"),
    ],
)  # fmt: skip
def test_an_aggregate_that_is_not_there_is_an_error_that_says_why(name, message):
    with pytest.raises(ConfigError) as caught:
        load_aggregate(name)
    assert str(caught.value) == message


SCORERS = [
    ExactMatch(),
    AnswerMatch(),
    AnswerMatch(measure="precision"),
    Classification("f1_weighted"),
    Classification("recall", positive="Paris"),
    BLEU(),
    BLEU(lowercase=True, smooth="floor", max_order=1),
    CHRF(word_order=2, beta=3),
    TER(),
    Adaptability(ExactMatch()),
    MaxMessages(1),
    MaxRepeatedCalls(0.5),
]
TEXTS = st.sampled_from(["Paris", "paris", "It is Paris, of course", "no, not in Paris", "巴黎", ""])


@st.composite
def samples(draw) -> list[Sample]:
    def sample(index: int) -> Sample:
        calls = [AIMessage(tool_calls=[ToolCall("look")])] * draw(st.integers(0, 2))
        return Sample.of(
            [HumanMessage("Where?"), *calls, AIMessage(draw(TEXTS))],
            id=str(index),
            reference=draw(TEXTS.filter(bool)),
            label=draw(TEXTS.filter(bool)),
            domain=draw(st.sampled_from(["law", "medicine", "x" * 99])),
        )

    return [sample(index) for index in range(draw(st.integers(1, 5)))]


@settings(max_examples=settings.default.max_examples // 2)
@given(samples(), st.sampled_from(SCORERS))
def test_a_total_needs_no_more_than_what_is_kept_of_scores(found, other):
    """Nor where a run's scores were made in two ways."""
    made = [[scorer.score(sample) for sample in found] for scorer in [*SCORERS, other]]
    for scores in made:
        for both in (scores, [score for score in scores + made[-1] if score.aggregate == scores[0].aggregate]):
            whole = compute_total(scores[0].aggregate, both)
            assert compute_total(scores[0].aggregate, [reduced_for_aggregate(score) for score in both]) == whole
            assert "failed" not in whole.note


def test_each_aggregate_has_scorers_that_make_its_scores_and_no_text_is_kept_for_it():
    sample = Sample.of([HumanMessage("?"), AIMessage("Paris")], reference="Paris", label="Paris", domain="law")
    made = [scorer.score(sample) for scorer in SCORERS]
    assert {score.aggregate for score in made} == set(AGGREGATES)
    for score in made:
        kept = reduced_for_aggregate(score)
        assert set(kept.details) == set(AGGREGATES[score.aggregate].details) - {"mark"}  # of runs without text
        assert (kept.scorer, kept.value, kept.label) == (score.scorer, score.value, score.label)
        assert (kept.reason, kept.warnings, kept.calls) == ("", (), ())


def test_of_a_score_for_an_aggregate_of_another_package_everything_is_kept():
    score = Score.scored("s", 0.5, reason="why", details={"a": 1}, aggregate="their_metrics:lowest")
    assert reduced_for_aggregate(score) is score
    call = JudgeCall(judge="j", prompt="p")
    assert reduced_for_aggregate(Score.scored("s", 0.5, reason="why", details={"a": 1}, calls=[call])) == Score.scored(
        "s", 0.5
    )


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("1 / (len(scores) - 2)", "ZeroDivisionError: division by zero"),
        ("'high'", "ValueError: could not convert string to float: 'high'"),
        ("None", "TypeError: float() argument must be a string or a real number, not 'NoneType'"),
    ],
)
def test_an_aggregate_that_fails_is_an_undefined_number_that_says_why(body, why, tmp_path, monkeypatch):
    module = f"theirs_{abs(hash(body))}"
    (tmp_path / f"{module}.py").write_text(f"def f(scores):\n    return {body}\n")
    monkeypatch.syspath_prepend(tmp_path)
    expected = Total(None, "undefined", f"the aggregate '{module}:f' failed: {why}", error=why.partition(":")[0])
    assert compute_total(f"{module}:f", scored([0, 1])) == expected


def test_a_number_alone_is_a_total_of_the_name_it_was_asked_by():
    assert compute_total("mean", scored([0, 1])) == Total(0.5, "mean")


NUMBERS = st.one_of(st.integers(), st.floats(allow_nan=False), st.text(), st.lists(st.integers()))


@given(st.lists(st.tuples(st.floats(0, 1), st.one_of(st.none(), st.text()), st.dictionaries(st.text(), NUMBERS))))
def test_packed_scores_are_what_was_packed(made):
    for aggregate in ("corpus_bleu", "my.module:own"):
        scores = [
            Score.scored("s", value, label=label, details={**details, "metric": "m"}, aggregate=aggregate)
            for value, label, details in made
        ]
        packed = PackedScores(map(PackedScores.pack, scores))
        assert list(packed) == list(map(reduced_for_aggregate, scores))
        assert list(packed[1:3]) == list(packed)[1:3]
        assert len(packed) == len(scores)
