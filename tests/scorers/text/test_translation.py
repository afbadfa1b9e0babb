"""BLEU, chrF and TER of one sample: sacrebleu's numbers, and what becomes of hostile texts."""

import json
import math
from concurrent.futures import ThreadPoolExecutor

import pytest
import sacrebleu
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
from sacrebleu.tokenizers.tokenizer_char import TokenizerChar
from sacrebleu.tokenizers.tokenizer_re import TokenizerRegexp
from sacrebleu.tokenizers.tokenizer_ter import TercomTokenizer
from sacrebleu.tokenizers.tokenizer_zh import TokenizerZh

from judgekit.errors import ConfigError
from judgekit.scorers.text.translation import BLEU, CHRF, TER
from judgekit.scoring import attempt, run_sync
from judgekit.traces.message import AIMessage, HumanMessage
from judgekit.traces.sample import Sample

words = st.sampled_from(["a", "b", "the", "cat,", "cat", "3.5", "-4", "don't", "...", "&amp;", "A", "é", "東京", "都は", "?!", "x-\ny", "😀", "\n"])  # fmt: skip
wordy = st.lists(words, max_size=14).map(" ".join)
texts = wordy | st.text(max_size=30)
several = st.lists(texts.filter(str.strip), min_size=1, max_size=3, unique=True)


def sample(response: str, *references: str) -> Sample:
    return Sample.of([HumanMessage("?"), AIMessage(response)], references=list(references))


def oracle(scorer) -> sacrebleu.BLEU | sacrebleu.CHRF | sacrebleu.TER:
    match scorer:
        case BLEU():
            return sacrebleu.BLEU(
                scorer.lowercase,
                tokenize=scorer.tokenize,
                smooth_method=scorer.smooth,
                max_ngram_order=scorer.max_order,
                effective_order=True,
            )
        case CHRF():
            return sacrebleu.CHRF(scorer.char_order, scorer.word_order, scorer.beta, scorer.lowercase)
        case TER():
            return sacrebleu.TER(scorer.normalized, scorer.no_punct, scorer.asian_support, scorer.case_sensitive)


def is_theirs(scorer, response: str, references: list[str]) -> None:
    score = scorer.score(sample(response, *references))
    metric = oracle(scorer)
    theirs = metric.sentence_score(response, references)
    if score.status == "skipped":
        assert score.reason == "the reference has no words"
        assert theirs.ref_len == 0 if isinstance(scorer, BLEU) else theirs.ref_length == 0
        return
    assert score.details["signature"] == str(metric.get_signature())
    assert 0 <= score.value <= 1
    if isinstance(scorer, TER):
        assert score.details["ter"] == pytest.approx(theirs.score / 100, abs=1e-12)
        assert score.details["edits"] == theirs.num_edits
        assert score.details["reference_length"] == theirs.ref_length
        expected = max(0, 1 - theirs.score / 100) if score.details["response_length"] else 0
    else:
        expected = theirs.score / 100
    assert score.value == pytest.approx(expected, abs=1e-9)
    if isinstance(scorer, BLEU):
        assert score.details["response_length"] == theirs.sys_len
        assert score.details["reference_length"] == theirs.ref_len
        assert score.details["brevity_penalty"] == theirs.bp
        assert score.details["precisions"] == pytest.approx([one / 100 for one in theirs.precisions], abs=1e-12)
        metric.smooth_method = "none"  # add-k adds to the counts
        unsmoothed = metric.sentence_score(response, references)
        assert (score.details["correct"], score.details["total"]) == (unsmoothed.counts, unsmoothed.totals)


SCORERS = [
    *(BLEU(tokenize=tokenize) for tokenize in ("13a", "intl", "zh", "char", "none")),
    *(BLEU(smooth=smooth) for smooth in ("floor", "add-k", "none")),
    BLEU(lowercase=True, max_order=2),
    BLEU(max_order=6),
    CHRF(),
    CHRF(word_order=2),
    CHRF(char_order=3, beta=1, lowercase=True),
    TER(),
    TER(normalized=True, asian_support=True, case_sensitive=True),
    TER(no_punct=True),
]
every = pytest.mark.parametrize("scorer", SCORERS, ids=repr)


@every
@settings(max_examples=settings.default.max_examples // 2)
@given(texts, several)
@example("x-\ny &amp; don't 3.5, . , .5.", ["x-y & don't 3.5,.,  .5.", "3.5"])
@example("", ["a", "a b c d"])
def test_a_sample_scores_what_sacrebleu_says(scorer, response, references):
    is_theirs(scorer, response, references)


@given(st.lists(st.sampled_from("私は東京都に住む。 a1,\n"), max_size=20).map("".join), several)
def test_japanese_is_split_by_mecab_as_sacrebleu_does(response, references):
    pytest.importorskip("MeCab")
    assume(not any("\0" in text for text in references))
    is_theirs(BLEU(tokenize="ja-mecab"), response, references)


def test_mecab_is_not_fooled_by_what_stands_behind_a_nul_character():
    pytest.importorskip("MeCab")
    scorer = BLEU(tokenize="ja-mecab")
    score = run_sync(lambda: attempt(scorer, sample("東京都に住む\0大阪", "東京都に住む")))
    assert score.status == "failed"
    assert score.reason == "ValueError: the text has a NUL character, where MeCab stops reading"


@pytest.mark.parametrize("case", ["one-sentence-reordered", "prefix-only", "second-sentence-garbage", "matches-second-reference-sentence"])  # fmt: skip
def test_bleu_is_that_of_the_whole_text_and_never_above_1(case, shared_data):
    cases = json.loads((shared_data / "cases" / "ragas_cases.json").read_text(encoding="utf-8"))["cases"]
    [found] = [one for one in cases if one["id"] == f"bleu-{case}"]
    expected = found["ragas_score"] if found["status"] == "agree" else found["recommended"]["default"]
    score = BLEU().score(sample(found["input"]["response"], found["input"]["reference"]))
    assert score.value == pytest.approx(expected, abs=found["tolerance"])


def test_equal_texts_score_1_and_an_empty_response_scores_0():
    for scorer in SCORERS:
        for text in ("The capital of France is Paris.", "东京都は日本の首都です。", "a"):
            assert scorer.score(sample(text, text)).value == pytest.approx(1, abs=1e-12), scorer
        score = scorer.score(sample(" \n", "a", "a b c d e f"))
        assert (score.status, score.value, score.reason) == ("scored", 0, "the response has no words"), scorer


def test_a_reference_of_which_no_words_are_left_is_skipped():
    for scorer, reference in ((BLEU(), "<skipped>"), (TER(no_punct=True), "?!")):
        score = scorer.score(sample("a b", reference))
        assert (score.status, score.reason) == ("skipped", "the reference has no words")


def test_bleu_can_be_made_from_its_details_by_hand():
    score = BLEU().score(sample("the cat sat on the mat", "the cat sat on a red mat"))
    assert score.details["correct"] == [5, 3, 2, 1]
    assert score.details["total"] == [6, 5, 4, 3]
    assert (score.details["response_length"], score.details["reference_length"]) == (6, 7)
    product = 5 / 6 * 3 / 5 * 2 / 4 * 1 / 3
    assert score.value == pytest.approx(math.exp(1 - 7 / 6) * product**0.25, abs=1e-12)
    assert score.reason == (
        "5 of 6 1-grams, 3 of 5 2-grams, 2 of 4 3-grams, 1 of 3 4-grams are in the reference; "
        "6 words for 7: brevity penalty 0.85"
    )


def test_chrf_can_be_made_from_its_details_by_hand():
    score = CHRF(char_order=2).score(sample("abc", "ab d"))
    assert score.details["matched"] == [2, 1]
    assert score.details["response_ngrams"] == [3, 2]
    assert score.details["reference_ngrams"] == [3, 2]
    both = (2 / 3 + 1 / 2) / 2
    assert score.value == pytest.approx(5 * both * both / (4 * both + both), abs=1e-12)
    assert score.reason == "3 of 5 n-grams of the response are in the reference, which has 5"


def test_ter_can_be_made_from_its_details_by_hand_and_is_0_where_more_is_wrong_than_there_is():
    shifted = TER().score(sample("d a b c", "a b c d"))
    assert (shifted.details["edits"], shifted.value) == (1, 0.75)
    assert shifted.reason == "edits from response to reference: 1, for 4 reference words"
    long = TER().score(sample("a b c d e", "x y"))
    assert (long.details["ter"], long.value) == (2.5, 0)


def test_a_chinese_text_is_warned_of_where_words_are_told_by_spaces():
    chinese = sample("支持退款", "不支持退款")
    [warning] = BLEU().score(chinese).warnings
    assert warning == (
        "tokenize='13a' treats Chinese, Japanese, Thai and similar scripts as a few long words; use 'zh', 'ja-mecab' or 'char'"
    )
    [warning] = TER().score(chinese).warnings
    assert warning.endswith("use normalized=True, asian_support=True")
    quiet = (BLEU(tokenize="zh"), BLEU(tokenize="char"), CHRF(), TER(normalized=True, asian_support=True))
    assert not any(scorer.score(chinese).warnings for scorer in quiet)
    assert not BLEU().score(sample("déjà vu 😀", "naïve")).warnings


def test_an_option_that_does_not_exist_is_an_error_that_names_the_choices():
    cases = [
            (lambda: BLEU(tokenize="13b"), "no tokenizer of sacrebleu is called '13b'. Did you mean '13a'? Known: none, zh, 13a, intl, char, ja-mecab"),
            (lambda: BLEU(smooth="exponential"), "no smoothing of BLEU is called 'exponential'. Known: exp, floor, add-k, none"),
            (lambda: BLEU(max_order=0), "max_order must be an integer of at least 1, found 0"),
            (lambda: CHRF(word_order=-1), "word_order must be an integer of at least 0, found -1"),
            (lambda: BLEU(max_order=True), "max_order must be an integer of at least 1, found True"),
            (lambda: CHRF(beta=float("nan")), "beta must be an integer of at least 1, found nan"),
        ]  # fmt: skip
    for make, message in cases:
        with pytest.raises(ConfigError) as caught:
            make()
        assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("tokenize", "missing", "message"),
    [
        ("ja-mecab", "ja_mecab", "tokenize='ja-mecab' needs a missing dependency: pip install 'sacrebleu[ja]'"),
        ("ko-mecab", "ko_mecab", "tokenize='ko-mecab' needs a missing dependency: Korean tokenization requires extra dependencies"),
    ],
)  # fmt: skip
def test_a_tokenizer_that_is_not_installed_is_an_error_that_says_what_to_install(
    tokenize, missing, message, monkeypatch
):
    monkeypatch.setattr(f"sacrebleu.tokenizers.tokenizer_{missing}.MeCab", None)
    with pytest.raises(ConfigError) as caught:
        BLEU(tokenize=tokenize)
    assert str(caught.value).startswith(message)


def test_texts_are_not_kept():
    kept = (Tokenizer13a, TokenizerRegexp, TokenizerZh, TokenizerChar, TercomTokenizer)
    before = [kind.__call__.cache_info().currsize for kind in kept]
    for scorer in (BLEU(), BLEU(tokenize="zh"), BLEU(tokenize="char"), CHRF(), TER()):
        for number in range(5):
            scorer.score(sample(f"never seen {number} before", f"nor was {number} this"))
    assert [kind.__call__.cache_info().currsize for kind in kept] == before


def test_threads_do_not_disturb_each_other():
    samples = [sample(f"the {n} cats, 東京", *(f"{m} cats {n} of 東京" for m in range(n % 3 + 1))) for n in range(12)]
    for scorer in SCORERS:
        with ThreadPoolExecutor(4) as threads:
            assert list(threads.map(scorer.score, samples)) == [scorer.score(one) for one in samples], scorer


def test_long_texts_are_scored_and_ter_says_that_they_are_too_many():
    long = "one two three " * 20_000
    assert BLEU().score(sample(long, "one two three")).value == pytest.approx(
        (3 / 60_000 * 2 / 59_999 * 1 / 59_998 * 0.5 / 59_997) ** 0.25, rel=1e-9
    )
    assert 0 < CHRF(char_order=1).score(sample(long, "one two three")).value < 1e-3
    score = run_sync(lambda: attempt(TER(), sample("a", "a", long)))
    assert (score.status, score.error) == ("failed", "ValueError")
    assert score.reason == "ValueError: a text of 60,000 words is too long for TER (at most 1,000); use BLEU or chrF"
