"""ROUGE."""

import asyncio
import json
import unicodedata
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from judgekit.errors import ConfigError
from judgekit.score import Score
from judgekit.scorers.text.rouge import ROUGE
from judgekit.scoring import attempt, signature
from judgekit.traces.message import AIMessage, HumanMessage
from judgekit.traces.sample import Sample

TYPES = ["rouge1", "rouge2", "rouge3", "rougeL", "rougeLsum"]
MODES = {"precision": "precision", "recall": "recall", "f1": "fmeasure"}
THEIRS = {stemmer: RougeScorer(TYPES, use_stemmer=stemmer) for stemmer in (False, True)}


def sample(response: str, *references: str) -> Sample:
    return Sample.of([HumanMessage("Hi"), AIMessage(response)], id="one", references=references)


def score(response: str, *references: str, **options: object) -> Score:
    return ROUGE(**options).score(sample(response, *references))


def agrees_with_rouge_score(response: str, reference: str, *, stemmer: bool, tokenize: str) -> None:
    theirs = THEIRS[stemmer].score(reference, response)
    given = sample(response, reference)
    for kind in TYPES:
        coroutine = ROUGE(kind, stemmer=stemmer, tokenize=tokenize).ascore(given)
        with pytest.raises(StopIteration) as stop:  # it waits for nothing, and an event loop for each would take long
            coroutine.send(None)
        ours = stop.value.value
        if ours.status == "skipped":
            assert ours.reason in {"the reference is empty", "no reference has words"}
            assert theirs[kind] == (0, 0, 0)
        else:
            expected = {mode: getattr(theirs[kind], name) for mode, name in MODES.items()}
            assert {mode: ours.details[mode] for mode in MODES} == pytest.approx(expected, abs=1e-9), kind
            assert ours.value == ours.details["f1"]


few_words = st.lists(st.sampled_from(["a", "was", "wa", "running", "Runs", "cats", "cat", "a\rcat"]), max_size=12)
lines = st.lists(few_words.map(" ".join), max_size=5).map("\n".join)


@given(response=lines, reference=lines, stemmer=st.booleans())
def test_texts_of_few_words_have_the_numbers_of_rouge_score(response, reference, stemmer):
    agrees_with_rouge_score(response, reference, stemmer=stemmer, tokenize="auto")


@given(response=st.text(st.characters(max_codepoint=127)), reference=st.text(st.characters(max_codepoint=127)))
def test_texts_in_ascii_have_the_numbers_of_rouge_score(response, reference):
    agrees_with_rouge_score(response, reference, stemmer=False, tokenize="auto")


@given(response=st.text(), reference=st.text(), shared=st.sampled_from(["", "\u212a \u0130 A", "é b\nc 中"]))
def test_texts_in_unicode_have_the_numbers_of_rouge_score_with_its_words(response, reference, shared):
    agrees_with_rouge_score(response + shared, shared + reference, stemmer=False, tokenize="rouge-score")


CASES = {
    "words, each as often as in both": ("rouge1", "the the cat", "the cat the the", 3, 3, 4),
    "runs of two": ("rouge2", "a b c a b", "a b a b", 2, 4, 3),
    "the same order with gaps": ("rougeL", "police kill the gunman", "police killed the gunman", 3, 4, 4),
    "another order": ("rougeL", "the gunman kill police", "police killed the gunman", 2, 4, 4),
    "lines": ("rougeLsum", "w1 w2 w6 w7 w8\nw1 w3 w8 w9 w5", "w1 w2 w3 w4 w5", 4, 10, 5),
    "lines that are no lines": ("rougeL", "w1 w2 w6 w7 w8\nw1 w3 w8 w9 w5", "w1 w2 w3 w4 w5", 4, 10, 5),
}
"""Those of words in order are the examples of Lin 2004, sections 3.1 and 3.2 (its union has 4 of 5 words)."""


@pytest.mark.parametrize(("type", "response", "reference", "matches", "said", "expected"), CASES.values(), ids=CASES)
def test_the_value_is_made_of_what_the_details_say(type, response, reference, matches, said, expected):
    found = score(response, reference, type=type)
    assert found.details == {
        "precision": float(Fraction(matches, said)),
        "recall": float(Fraction(matches, expected)),
        "f1": pytest.approx(float(Fraction(2 * matches, said + expected))),
        "matches": matches,
        "in_response": said,
        "in_reference": expected,
        "reference": reference,
    }
    for mode in MODES:
        one = score(response, reference, type=type, mode=mode)
        assert (one.scorer, one.value, one.calls) == (f"{type}_{mode}", found.details[mode], ())


def published_rouge_l(references: list[str], candidate: str) -> float:
    """The F1 of the reference of highest recall, over words between spaces, as a recipe has it that many have copied."""
    found = []
    for reference in references:
        ones, others = reference.lower().split(), candidate.lower().split()
        table = [[0] * (len(others) + 1) for _ in range(len(ones) + 1)]
        for i, one in enumerate(ones):
            for j, other in enumerate(others):
                table[i + 1][j + 1] = table[i][j] + 1 if one == other else max(table[i][j + 1], table[i + 1][j])
        if ones and others:
            found.append((table[-1][-1] / len(others), table[-1][-1] / len(ones)))
    precision, recall = max(found, key=lambda shares: shares[1], default=(0, 0))
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


@given(response=lines, references=st.lists(lines, min_size=1, max_size=4))
def test_the_choice_by_recall_over_words_between_spaces_is_the_published_recipe(response, references):
    assume(any(text.strip() for text in references))
    found = score(response, *references, tokenize="whitespace", reference_choice="recall")
    assert found.value == pytest.approx(published_rouge_l(references, response), abs=1e-9)


def test_the_best_of_several_references_is_the_best_by_the_mode():
    references = ["a b c d e f", "a", "a b x"]
    best = {"f1": "a b x", "precision": "a b c d e f", "recall": "a"}
    for mode, reference in best.items():
        found = score("a b", *references, mode=mode)
        assert found.details["reference"] == reference
        assert found.reason.endswith(f", the one of 3 with the highest {mode}")


def test_the_choice_by_recall_takes_the_first_of_the_highest_recall_whatever_the_mode():
    for mode, value in (("f1", Fraction(2, 3)), ("precision", Fraction(1, 2)), ("recall", Fraction(1))):
        found = score("a b", "a b c", "b", "a b", mode=mode, reference_choice="recall")
        assert found.value == pytest.approx(float(value))
        assert found.details["reference"] == "b"
        assert found.reason == (
            "words in the same order in common: 1 of 2 in the response, of 1 in the reference, "
            "the one of 3 with the highest recall"
        )


@given(
    response=lines,
    references=st.lists(lines, min_size=2, max_size=4),
    mode=st.sampled_from(list(MODES)),
    type=st.sampled_from(TYPES),
)
def test_one_more_reference_never_lowers_the_value(response, references, mode, type):
    assume(references[0].strip())
    scorer = ROUGE(type, mode)
    assert scorer.score(sample(response, *references[:-1])).value <= scorer.score(sample(response, *references)).value


known_text = st.text(st.characters(exclude_categories=["Cs", "Cn"]), min_size=1)
"""Of characters that Python knows; there may be newer ones."""


def has_letter_or_digit(text: str) -> bool:
    return any(unicodedata.category(one)[0] in "LN" for one in text)


@given(text=known_text, type=st.sampled_from(["rouge1", "rougeL", "rougeLsum"]), mode=st.sampled_from(list(MODES)))
def test_a_text_and_itself_have_everything_in_common_in_any_script(text, type, mode):
    found = score(text, text, type=type, mode=mode)
    assert (found.value == 1) if has_letter_or_digit(text) else (found.status == "skipped")


def test_the_cases_of_ragas_have_their_values_or_those_recommended(shared_data):
    cases = json.loads((shared_data / "cases" / "ragas_cases.json").read_text(encoding="utf-8"))["cases"]
    cases = [case for case in cases if case["metric"] == "rouge"]
    assert len(cases) == 13
    for case in cases:
        modes = {theirs: ours for ours, theirs in {**MODES, "f1": "fmeasure"}.items()}
        options = {"type": case["options"]["rouge_type"], "mode": modes[case["options"]["mode"]], "stemmer": True}
        response, reference = case["input"]["response"], case["input"]["reference"]
        found = score(response, reference, **options)
        if case["id"] == "rougeL-empty-reference":  # 0 there; nothing can be said of a response beside nothing
            assert (found.status, found.reason) == ("skipped", "the reference is empty")
            continue
        assert found.value == pytest.approx(case.get("recommended", {}).get("default", case["ragas_score"]), abs=1e-9)
        same = score(response, reference, tokenize="rouge-score", **options)
        if case["id"] == "rouge1-cjk-identical":  # no word at all there
            assert (same.status, same.reason) == ("skipped", "no reference has words")
        else:
            assert same.value == pytest.approx(case["ragas_score"], abs=1e-9)


def test_stems_are_compared_only_where_asked_for():
    assert score("the cat runs", "the cats running").details["matches"] == 1
    assert score("the cat runs", "the cats running", stemmer=True).details["matches"] == 3


def test_a_response_without_a_word_scores_0():
    for response in ["", " \n", "...!?", "👍🏽 ❤️", "។ 。"]:
        for kind in TYPES:
            found = score(response, "a word, and one, and one more", type=kind)
            assert (found.value, found.reason, found.details["in_response"]) == (0, "the response has no words", 0)


@pytest.mark.parametrize("references", [("...",), ("👍🏽 ❤️", "", "。")])
def test_without_a_word_in_any_reference_it_is_skipped(references):
    found = score("a word", *references)
    assert (found.status, found.reason) == ("skipped", "no reference has words")


def test_references_without_a_word_are_not_among_the_references():
    found = score("a b", "", "?!", "a c", "  ")
    assert (found.value, found.details["reference"]) == (0.5, "a c")
    assert found.reason == "words in the same order in common: 1 of 2 in the response, of 2 in the reference"


def test_a_reference_shorter_than_a_run_of_words_is_0_with_a_warning():
    warning = "the reference has too few words for rouge2: 0, as in rouge-score"
    found = score("yes", "yes", type="rouge2")
    assert (found.value, found.warnings) == (0, (warning,))
    assert found.reason == "sequences of 2 words in common: 0 of 0 in the response, of 0 in the reference"
    assert score("yes", "yes it is", type="rouge2").warnings == ()
    assert score("no", "yes", "yes it is", type="rouge2").warnings == ()


@pytest.mark.parametrize(("type", "words"), [("rougeL", 100_001), ("rougeLsum", 31_623)])
def test_texts_that_would_take_too_long_fail_at_once(type, words):
    long = "a " * words
    found = asyncio.run(attempt(ROUGE(type), sample(long, long)))
    assert (found.status, found.error) == ("failed", "ValueError")
    assert found.reason == (
        f"ValueError: {type} would take too long to compare {words:,} words with {words:,}; "
        "use rouge1 or rouge2, or shorter texts"
    )
    assert score(long, long, type="rouge2").value == 1


@pytest.mark.parametrize("text", ["a\n", "\n"], ids=["of a word", "without a word"])
def test_lines_that_would_take_too_long_fail_at_once(text):
    long = f"{text}b\n" * 5_000  # 10,000 lines
    found = asyncio.run(attempt(ROUGE("rougeLsum"), sample(long, long)))  # to compare them would take minutes
    assert (found.status, found.error) == ("failed", "ValueError")
    assert found.reason.startswith("ValueError: rougeLsum would take too long to compare ")
    assert score(long, long, type="rouge2").value == 1
    assert score(long, "a b", type="rougeLsum").status == "scored"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"type": "rouge-l"}, r"no type of ROUGE is called 'rouge-l'. Did you mean 'rougeL'\? Known: rouge1, "),
        ({"mode": "fmeasure"}, r"no mode of ROUGE is called 'fmeasure'.* Known: f1, precision, recall"),
        ({"reference_choice": "f1"}, r"no choice of a reference is called 'f1'\. Known: value, recall"),
        ({"tokenize": "words"}, "no way to split a text into words is called 'words'"),
    ],
)
def test_options_that_there_are_not_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        ROUGE(**options)


def test_it_is_named_after_type_and_mode_unless_named():
    assert [ROUGE().name, ROUGE("rouge2", "recall").name, ROUGE(name="mine").name] == [
        "rougeL_f1",
        "rouge2_recall",
        "mine",
    ]
    assert signature(ROUGE()) != signature(ROUGE(stemmer=True))
