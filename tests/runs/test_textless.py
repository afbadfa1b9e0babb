"""Scores without text, also those of scorers that follow no custom."""

from hypothesis import given
from hypothesis import strategies as st

from judgekit.aggregates.total import compute_total
from judgekit.runs.textless import TextRemover
from judgekit.score import JudgeCall, JudgeExchange, Score

SAID = "said by a user"
VALUES = st.recursive(
    st.just(SAID) | st.just(4111411141114111) | st.booleans() | st.none() | st.floats(0, 1),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([SAID, "value", "status"]), inner),
    max_leaves=6,
)
NAMES = ("repeats", "votes", "unasked", "verdicts", "doubted", "flipped", "predicted", "mine", SAID)
CALL = JudgeCall(judge="j/m", prompt="p@1", exchange=JudgeExchange(messages=[("user", SAID)], reply=SAID))


def is_in(score: Score) -> bool:
    kept = score.model_dump_json()
    return SAID in kept or "4111411141114111" in kept


@given(
    details=st.dictionaries(st.sampled_from(NAMES), VALUES),
    aggregate=st.sampled_from(["classification", "mean", "theirs:f"]),
)
def test_of_a_reason_and_details_of_any_shape_no_text_is_kept(details, aggregate):
    score = Score.scored("mine", 1, reason=SAID, details=details, calls=[CALL], aggregate=aggregate)
    assert not is_in(TextRemover().score(score))


def test_the_words_of_an_error_are_not_kept():
    score = Score.failed("mine", f"ValueError: {SAID}", error="ValueError", calls=[CALL])
    kept = TextRemover().score(score)
    assert (kept.error, is_in(kept)) == ("ValueError", False)


def test_a_prediction_of_any_type_is_counted_as_with_text():
    for predicted in [SAID, 7, 0.5, True, None, [SAID], {"text": SAID}]:
        details = {"measure": "accuracy", "positive": None, "true": "good", "predicted": predicted}
        other = {**details, "true": "bad", "predicted": "bad"}
        scores = [Score.scored("mine", 0, details=one, aggregate="classification") for one in (details, other)]
        textless = TextRemover()
        kept = [textless.score(one) for one in scores]
        assert not any(map(is_in, kept))
        with_text, without = (compute_total("classification", found) for found in (scores, kept))
        assert without.metrics == with_text.metrics
