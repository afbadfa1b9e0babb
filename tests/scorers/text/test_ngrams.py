"""N-gram precision."""

import unicodedata
from collections import Counter

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from judgekit.errors import ConfigError
from judgekit.score import Score
from judgekit.scorers.text.ngrams import NgramPrecision
from judgekit.traces.message import AIMessage, HumanMessage
from judgekit.traces.sample import Sample


def score(response: str, *references: str, **options: object) -> Score:
    sample = Sample.of([HumanMessage("Hi"), AIMessage(response)], id="one", references=references)
    return NgramPrecision(**options).score(sample)


def published(references: list[str], candidate: str, n: int = 4) -> float:
    """The simplified BLEU of a published recipe: n-grams as texts, pooled over orders, in small letters."""

    def grams(text: str) -> Counter[str]:
        words = text.lower().split()
        return Counter(" ".join(words[i : i + size]) for size in range(1, n + 1) for i in range(len(words) - size + 1))

    made = grams(candidate)
    most = max((sum((made & grams(reference)).values()) for reference in references), default=0)
    return most / made.total() if made else 0.0


texts = st.lists(st.sampled_from(["The", "the", "cat", "cat,", "sat", "\n", "猫"]), max_size=14).map(" ".join)


@given(response=texts, references=st.lists(texts, min_size=1, max_size=4), n=st.integers(1, 6))
def test_small_letters_between_spaces_give_the_published_numbers(response, references, n):
    assume(any(text.strip() for text in references))
    found = score(response, *references, n=n, lowercase=True, tokenize="whitespace")
    assert found.value == pytest.approx(published(references, response, n), abs=1e-12)


@given(words=st.lists(st.sampled_from("abc"), max_size=20), others=st.lists(st.sampled_from("abc"), max_size=20))
def test_orders_have_the_clipped_counts_of_nltk(words, others):
    nltk = pytest.importorskip("nltk.translate.bleu_score")
    assume(words and others)
    found = score(" ".join(words), " ".join(others), tokenize="whitespace")
    orders = range(1, min(4, len(words)) + 1)
    theirs = [nltk.modified_precision([others], words, order) for order in orders]
    assert found.details["matches"] == [one.numerator for one in theirs]
    assert found.details["in_response"] == [one.denominator for one in theirs]


def test_the_best_reference_counts_and_the_first_of_equals():
    found = score("a b c", "c", "a b x", "x b c", "?!")
    assert (found.value, found.details["reference"]) == (0.5, "a b x")
    assert found.reason == "3 of 6 n-grams of the response are in the best of 3 references"


def test_case_counts_unless_letters_are_made_small():
    assert score("The CAT", "the cat").value == 0
    assert score("The CAT", "the cat", lowercase=True).value == 1


known_text = st.text(st.characters(exclude_categories=["Cs", "Cn"]), min_size=1)
"""Of characters that Python knows; there may be newer ones."""


def has_letter_or_digit(text: str) -> bool:
    return any(unicodedata.category(one)[0] in "LN" for one in text)


@given(text=known_text, n=st.integers(1, 5))
def test_a_text_and_itself_have_everything_in_common_in_any_script(text, n):
    found = score(text, text, n=n)
    assert (found.value == 1) if has_letter_or_digit(text) else (found.status == "skipped")


@given(response=texts, references=st.lists(texts, min_size=2, max_size=4))
def test_one_more_reference_never_lowers_the_value(response, references):
    assume(any(map(str.isalnum, references[0])))
    assert score(response, *references[:-1]).value <= score(response, *references).value


@pytest.mark.parametrize("response", ["", "\n", "...", "👍🏽 ❤️"])
def test_a_response_without_a_word_scores_0(response):
    found = score(response, "a word")
    assert (found.value, found.reason, found.details["in_response"]) == (0, "the response has no words", [])


@pytest.mark.parametrize(
    ("references", "reason"),
    [
        ((), "the sample has no reference"),
        (("", "  "), "the reference is empty"),
        (("", "。", "❤️"), "no reference has words"),
    ],
)
def test_without_a_reference_with_words_it_is_skipped(references, reason):
    found = score("a word", *references)
    assert (found.status, found.reason) == ("skipped", reason)


@pytest.mark.parametrize("n", [0, -1, True, 2.0, "4"])
def test_n_is_a_whole_number_of_one_or_more(n):
    with pytest.raises(ConfigError, match="n must be an integer of at least 1, found "):
        NgramPrecision(n)


def test_a_way_to_split_that_there_is_not_is_refused():
    with pytest.raises(ConfigError, match="no way to split a text into words is called 'word'"):
        NgramPrecision(tokenize="word")
