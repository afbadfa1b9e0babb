"""Corpus BLEU, chrF and TER of many scores: sacrebleu's own corpus numbers."""

from itertools import zip_longest

import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st

from judgekit.aggregates.total import mean
from judgekit.aggregates.translation import corpus_bleu, corpus_chrf, corpus_ter
from judgekit.scorers.text.translation import BLEU, CHRF, TER
from judgekit.traces.message import AIMessage
from judgekit.traces.sample import Sample

words = st.sampled_from(["a", "b", "the", "cat,", "Cat", "cat", "3.5", "東京", "都は", "...", "\n", "é"])
texts = st.lists(words, max_size=8).map(" ".join)
pairs = st.lists(
    st.tuples(texts, st.lists(texts.filter(str.strip), min_size=1, max_size=3, unique=True)), min_size=1, max_size=6
)

KINDS = [
    (BLEU(), sacrebleu.BLEU(), corpus_bleu),
    (BLEU(tokenize="zh", lowercase=True), sacrebleu.BLEU(lowercase=True, tokenize="zh"), corpus_bleu),
    (BLEU(tokenize="char", smooth="floor"), sacrebleu.BLEU(tokenize="char", smooth_method="floor"), corpus_bleu),
    (BLEU(smooth="add-k", max_order=2), sacrebleu.BLEU(smooth_method="add-k", max_ngram_order=2), corpus_bleu),
    (BLEU(smooth="none"), sacrebleu.BLEU(smooth_method="none"), corpus_bleu),
    (CHRF(), sacrebleu.CHRF(), corpus_chrf),
    (CHRF(word_order=2, beta=3), sacrebleu.CHRF(word_order=2, beta=3), corpus_chrf),
    (TER(), sacrebleu.TER(), corpus_ter),
    (TER(normalized=True, asian_support=True), sacrebleu.TER(normalized=True, asian_support=True), corpus_ter),
]
every = pytest.mark.parametrize(("scorer", "metric", "aggregate"), KINDS, ids=[repr(kind[0]) for kind in KINDS])


def scores(scorer, corpus):
    made = [scorer.score(Sample.of([AIMessage(response)], references=references)) for response, references in corpus]
    return [score for score in made if score.status == "scored"]


def theirs(metric, corpus):
    return metric.corpus_score(
        [response for response, _ in corpus], [*zip_longest(*(several for _, several in corpus))]
    )


@every
@settings(max_examples=settings.default.max_examples // 2)
@given(pairs)
def test_scores_come_to_sacrebleus_corpus_number_with_its_signature(scorer, metric, aggregate, corpus):
    made = scores(scorer, corpus)
    total = aggregate(made)
    expected = theirs(metric, corpus)
    assert total.note.partition("; ")[0] == str(metric.get_signature())
    assert total.value == 0 or "0 since" not in total.note
    assert total.metrics["mean of samples"] == mean(made)
    if isinstance(scorer, TER):
        assert total.metrics["corpus TER"] == pytest.approx(expected.score / 100, abs=1e-9)
        assert total.value == pytest.approx(max(0, 1 - expected.score / 100), abs=1e-9)
    else:
        assert total.value == pytest.approx(expected.score / 100, abs=1e-9)


def test_a_corpus_number_is_no_mean():
    corpus = [("a b c d e f g h", ["a b c d e f g h"]), ("x", ["y z"])]
    total = corpus_bleu(scores(BLEU(), corpus))
    assert total.name == "corpus BLEU"
    # 8 of 9, 7 of 7, 6 of 6, 5 of 5 n-grams, and 9 words for 10
    assert total.value == pytest.approx((8 / 9) ** 0.25 * 2.718281828459045 ** (1 - 10 / 9), abs=1e-12)
    assert total.metrics == {"mean of samples": 0.5}


@pytest.mark.parametrize(
    ("scorer", "responses", "remark"),
    [
        (BLEU(), ["Paris", "in Paris yes"], "; 0 since no response has 4 words: use CHRF, or BLEU(max_order=1)"),
        (BLEU(smooth="floor"), ["", ""], "; 0 since no response has a word"),
        (BLEU(), ["in Paris yes", "in the old town"], ""),
        (BLEU(smooth="none"), ["x y z w v"], ""),
        (BLEU(max_order=1), ["Paris"], ""),
    ],
)
def test_the_note_says_why_no_response_is_long_enough(scorer, responses, remark):
    corpus = [(one, ["Paris is in the old town"]) for one in responses]
    total = corpus_bleu(scores(scorer, corpus))
    metric = sacrebleu.BLEU(smooth_method=scorer.smooth, max_ngram_order=scorer.max_order)
    assert total.value == pytest.approx(theirs(metric, corpus).score / 100, abs=1e-9)
    assert total.note == f"{metric.get_signature()}{remark}"
    assert not (remark and total.value)


def test_a_ter_above_1_is_shown_beside_a_value_of_0():
    total = corpus_ter(scores(TER(), [("a b c d e", ["x y"])]))
    assert (total.name, total.value) == ("1 - corpus TER", 0)
    assert total.metrics == {"corpus TER": 2.5, "mean of samples": 0}


def test_numbers_of_references_may_differ_and_the_signature_says_so():
    total = corpus_bleu(scores(BLEU(), [("a", ["a"]), ("b", ["b", "c"])]))
    assert total.note.startswith("nrefs:var|case:mixed|eff:no|tok:13a|smooth:exp|version:")
    assert total.value is not None


@pytest.mark.parametrize(
    ("one", "other", "aggregate", "kinds"),
    [
        (BLEU(), BLEU(lowercase=True), corpus_bleu, ("BLEU case:mixed", "BLEU case:lc")),
        (BLEU(), BLEU(tokenize="char"), corpus_bleu, ("tok:13a", "tok:char")),
        (CHRF(), CHRF(beta=3), corpus_chrf, ("chrF2 case", "chrF3 case")),
        (TER(), TER(no_punct=True), corpus_ter, ("punct:yes", "punct:no")),
    ],
)
def test_scores_made_in_different_ways_have_no_corpus_number(one, other, aggregate, kinds):
    corpus = [("a b", ["a b"])]
    total = aggregate([*scores(one, corpus), *scores(other, corpus)])
    assert (total.value, total.name) == (None, "undefined")
    assert total.note.startswith("its scores have different settings: ")
    assert all(kind in total.note for kind in kinds)
    assert total.metrics == {"mean of samples": pytest.approx(1)}
