"""Classification."""

import re

import pytest

from judgekit.errors import ConfigError
from judgekit.score import Score
from judgekit.scorers.classification.labels import Classification
from judgekit.traces.message import AIMessage, HumanMessage
from judgekit.traces.sample import Sample


def score(response: str | None, **known: object) -> Score:
    messages = [HumanMessage("?"), *([] if response is None else [AIMessage(response)])]
    return Classification().score(Sample.of(messages, **known))


def test_a_prediction_or_else_the_whole_response_is_compared_with_the_label():
    cases = [
        ("spam\n", {"label": "spam"}, 1, "correct", "predicted 'spam'"),
        ("It is spam", {"label": "spam"}, 0, "wrong", "predicted 'It is spam', true label 'spam'"),
        ("Spam", {"label": "spam"}, 0, "wrong", "predicted 'Spam', true label 'spam'"),
        ("spam", {"label": "spam", "prediction": "ham"}, 0, "wrong", "predicted 'ham', true label 'spam'"),
        (None, {"label": "退款", "prediction": "退款"}, 1, "correct", "predicted '退款'"),
        ("  ", {"label": "spam"}, 0, "no_answer", "no answer, true label 'spam'"),
        ("spam", {"label": "spam", "prediction": ""}, 0, "no_answer", "no answer, true label 'spam'"),
    ]
    for response, known, value, label, reason in cases:
        found = score(response, **known)
        assert (found.value, found.label, found.reason) == (value, label, reason)


@pytest.mark.parametrize(
    ("response", "known", "reason"),
    [
        ("spam", {}, "the sample's label is missing"),
        (None, {"label": "spam"}, "the sample has no prediction and no response (no agent message)"),
    ],
)
def test_a_sample_without_a_label_or_a_prediction_is_skipped(response, known, reason):
    messages = [] if response is None else [AIMessage(response)]
    found = Classification().score(Sample.of(messages, **known))
    assert (found.status, found.reason) == ("skipped", reason)


def test_the_details_are_what_a_run_is_counted_from():
    found = Classification("f1", positive="spam").score(Sample.of([AIMessage(" ham ")], label="spam"))
    assert found.details == {"true": "spam", "predicted": "ham", "measure": "f1", "positive": "spam"}
    assert found.aggregate == "classification"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"measure": "f1_macros"}, "no measure is called 'f1_macros'. Did you mean 'f1_macro'? Known: accuracy, "),
        (
            {"measure": "recall"},
            "recall is computed for one class: name it with positive=..., or use recall_macro, recall_micro or recall_weighted",
        ),
        ({"measure": "f1_micro", "positive": "a"}, "f1_micro is an average over classes; remove positive=..."),
    ],
)
def test_options_that_do_not_fit_are_refused(options, message):
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}"):
        Classification(**options)
