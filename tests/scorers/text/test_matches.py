"""Exact match, string presence, patterns and similarities."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.metrics.distance import edit_distance, jaro_similarity

from judgekit.errors import ConfigError
from judgekit.score import Score
from judgekit.scorers.text.matches import ExactMatch, Regex, Similarity, StringPresence
from judgekit.scoring import attempt, signature
from judgekit.traces.message import AIMessage, HumanMessage
from judgekit.traces.sample import Sample

LONG = "word 句子 😀 " * 5_000
texts = st.text("ab c北é😀.", max_size=9)
blank_or_not = st.lists(texts, min_size=1, max_size=3).filter(lambda references: any(map(str.strip, references)))


def sample(response: str | None, *references: str) -> Sample:
    messages = [HumanMessage("Hi"), *([] if response is None else [AIMessage(response)])]
    return Sample.of(messages, id="one", references=references or None)


def value(scorer, response: str, *references: str) -> float:
    return scorer.score(sample(response, *references)).value


REFERRING = [ExactMatch(), StringPresence(), *map(Similarity, ("levenshtein", "jaro_winkler", "indel", "token_sort"))]


@pytest.mark.parametrize("scorer", REFERRING, ids=lambda scorer: scorer.name)
class TestEachThatNeedsReferences:
    def test_it_is_skipped_without_a_response_or_a_reference(self, scorer):
        reasons = {
            "the sample has no response: there is no agent message": Sample(id="s", reference="a"),
            "the sample has no reference": sample("a"),
            "the reference is empty": sample("a", " ", ""),
        }
        for reason, one in reasons.items():
            assert scorer.score(one) == Score.skipped(scorer.name, reason)

    def test_an_empty_response_scores_0(self, scorer):
        for response in ("", " \n"):
            found = scorer.score(sample(response, "a b", "c"))
            assert (found.status, found.value) == ("scored", 0)

    def test_the_same_text_scores_1_and_blank_references_do_not_count(self, scorer):
        for text in ("Paris", "...", "😀", "支持 refund ok?", "\ud800", LONG):
            found = scorer.score(sample(text, " ", "other", text))
            assert found.value == 1
            assert Score.model_validate_json(found.model_dump_json()) == found

    @given(response=texts, references=blank_or_not)
    @settings(max_examples=settings.default.max_examples // 2)
    def test_the_best_reference_counts(self, scorer, response, references):
        alone = [value(scorer, response, one) for one in references if one.strip()]
        found = scorer.score(sample(response, *references))
        assert found.value == max(alone)
        assert found.reason
        if found.value:
            assert found.details["reference"] in references
            assert value(scorer, response, found.details["reference"]) == found.value


def test_an_exact_match_minds_all_but_white_space_around():
    assert value(ExactMatch(), " Paris\n", "Rome", "Paris ") == 1
    assert [value(ExactMatch(), text, "Paris") for text in ("paris", "Paris.", "P aris", "Paris Paris")] == [0] * 4


def test_an_exact_match_of_normalized_texts_minds_what_changes_the_answer():
    for text in ("paris", "PARIS!", '"Paris."', "Ｐaris"):  # noqa: RUF001 - it is to be wide
        assert value(ExactMatch(normalize=True), text, "Paris") == 1
    assert value(ExactMatch(normalize=True), "-5", "5") == 0
    assert value(ExactMatch(normalize=True), "?", "!") == 0
    assert value(ExactMatch(normalize=True), "", "...") == 0


def test_an_exact_match_says_which_or_that_there_is_none():
    found = ExactMatch().score(sample("Paris", "Rome", "Paris"))
    assert (found.reason, found.details) == ("the response is 'Paris'", {"reference": "Paris"})
    assert (
        ExactMatch(normalize=True).score(sample("paris", "Paris")).reason == "the response is 'Paris', both normalized"
    )
    found = ExactMatch().score(sample("Oslo", "Rome", "Paris"))
    assert found.reason == "the response is 'Oslo', which is not one of: 'Rome', 'Paris'"
    assert found.details == {"reference": None}
    assert ExactMatch().score(sample("", "Rome")).reason == "the response is '', which is not one of: 'Rome'"
    assert len(ExactMatch().score(sample(LONG, "Rome")).reason) < 300


def test_a_reference_is_present_where_it_stands_in_the_response():
    assert value(StringPresence(), "It is Paris.", " Paris\n") == 1
    assert value(StringPresence(), "首都是北京。", "北京") == 1
    assert value(StringPresence(), "a party", "art") == 1
    assert value(StringPresence(), "Paris", "It is Paris.") == 0
    assert value(StringPresence(), f"{LONG}x", "x") == 1


def test_presence_says_which_or_that_there_is_none():
    found = StringPresence().score(sample("to Paris", "Rome", "Paris"))
    assert (found.reason, found.details) == ("'Paris' is in the response", {"reference": "Paris"})
    found = StringPresence().score(sample("to Oslo", "Rome"))
    assert (found.reason, found.details) == ("not in the response: 'Rome'", {"reference": None})


PATTERNS = {
    "somewhere": (Regex(r"W\d{3}"), "order W123!", 1, r"'W\\d{3}' is in the response: 'W123'", (6, 10)),
    "nowhere": (Regex(r"W\d{3}"), "order W12", 0, r"'W\\d{3}' is not in the response", (None, None)),
    "the whole": (Regex("a+", full_match=True), "aaa", 1, "'a+' matches the whole response", (0, 3)),
    "a part": (Regex("a+", full_match=True), "aaa ", 0, "'a+' does not match the whole response", (None, None)),
    "a script": (Regex(r"\p{Han}+"), "in 北京", 1, r"'\\p{Han}+' is in the response: '北京'", (3, 5)),
    "nothing, and it may": (Regex("a*", full_match=True), "", 1, "'a*' matches the whole response", (0, 0)),
}


def test_a_pattern_scores_what_it_says():
    for scorer, response, expected, reason, place in PATTERNS.values():
        found = scorer.score(sample(response))
        assert (found.value, found.reason) == (expected, reason)
        assert (found.details["start"], found.details["end"]) == place


def test_a_pattern_needs_a_response_alone():
    no_response = "the sample has no response: there is no agent message"
    assert Regex("a").score(Sample(id="s")) == Score.skipped("regex", no_response)
    assert Regex("a").score(sample("a")).value == 1


def test_a_bad_pattern_is_refused_at_once():
    cases = ["(", "[a", r"\p{Nope}", "a{1,99999999999999999999}", "(" * 5000 + ")" * 5000, 5, None]
    for pattern in cases:
        with pytest.raises(ConfigError, match=r"^pattern: .* is not a valid regular expression: "):
            Regex(pattern)


def test_a_search_that_does_not_end_is_given_up_and_failed(monkeypatch):
    monkeypatch.setattr("judgekit.scorers.text.matches._SECONDS", 0.05)
    found = asyncio.run(attempt(Regex("(x+x+)+y"), sample("x" * 10**4)))
    assert (found.status, found.error) == ("failed", "TimeoutError")
    assert found.reason == (
        "TimeoutError: the search for '(x+x+)+y' timed out after 0.05 s in a response of 10,000 characters; avoid "
        "nested repeats in the pattern"
    )


def test_a_pattern_is_part_of_the_signature_and_its_compiled_form_is_not():
    used = Regex("a")
    used.score(sample("a"))
    assert signature(used) == signature(Regex("a"))
    assert len({signature(one) for one in (used, Regex("b"), Regex("a", full_match=True))}) == 3


def levenshtein(one: str, other: str) -> float:
    return 1 - edit_distance(one, other) / max(len(one), len(other))


def indel(one: str, other: str) -> float:
    both = len(one) + len(other)
    return 1 - edit_distance(one, other, substitution_cost=2) / both if both else 1


def token_sort(one: str, other: str) -> float:
    return indel(*(" ".join(sorted(text.split())) for text in (one, other)))


def jaro_winkler(one: str, other: str) -> float:
    jaro = 1 if one == other else jaro_similarity(one, other)  # of two equal letters nltk 3.9 says 0
    prefix = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return jaro + 0.1 * min(prefix, 4) * (1 - jaro) if jaro > 0.7 else jaro


ORACLES = {"levenshtein": levenshtein, "indel": indel, "token_sort": token_sort, "jaro_winkler": jaro_winkler}


@pytest.mark.parametrize("measure", ORACLES)
@given(texts.filter(str.strip), texts.filter(str.strip))
def test_similarities_are_those_of_another_implementation(measure, response, reference):
    if abs(jaro_similarity(response, reference) - 0.7) < 1e-9:
        return  # seven tenths may be a bit more in binary, and then it is above
    assert value(Similarity(measure), response, reference) == pytest.approx(
        ORACLES[measure](response, reference), abs=1e-9
    )


def test_similarities_have_the_known_values():
    """The examples of Winkler 1990 (0.961, 0.840 and 0.813) are written as fractions."""
    cases = [
        ("levenshtein", "支持退款", "不支持退款", 4 / 5),
        ("token_sort", "Rome to  Paris", "Paris to Rome", 1),
        ("jaro_winkler", "MARTHA", "MARHTA", 173 / 180),
        ("jaro_winkler", "DWAYNE", "DUANE", 0.84),
        ("jaro_winkler", "DIXON", "DICKSONX", 61 / 75),
    ]
    for measure, response, reference, expected in cases:
        assert value(Similarity(measure), response, reference) == pytest.approx(expected, abs=1e-12)


def test_a_similarity_says_to_which_reference_and_those_to_all():
    found = Similarity().score(sample("kitten", "dog", "sitting", " ", "mitten"))
    assert found.value == 5 / 6
    assert found.reason == "levenshtein similarity 0.833 to 'mitten', the most similar of 3 references"
    assert found.details == {"reference": "mitten", "values": [0.0, pytest.approx(4 / 7), 5 / 6]}
    assert Similarity().score(sample(" ", "a")).reason == "the response is empty"


def test_a_similarity_is_named_after_its_measure_and_known():
    assert Similarity("token_sort").name == "token_sort_similarity"
    assert Similarity(name="mine").name == "mine"
    with pytest.raises(
        ConfigError, match=r"no measure of similarity is called 'levenstein'. Did you mean 'levenshtein'"
    ):
        Similarity("levenstein")


def test_options_say_whether_whitespace_counts_and_what_a_match_means():
    cases = [
        (ExactMatch(strip=False), "a", "a", 1),
        (ExactMatch(strip=False), "a\n", "a", 0),
        (ExactMatch(negate=True), " a ", "a", 0),
        (ExactMatch(strip=False, negate=True), "a\n", "a", 1),
        (ExactMatch(normalize=True, negate=True), "'A.'", "a", 0),
        (StringPresence(strip=False), "it is a.", " a", 1),
        (StringPresence(strip=False), "it is (a).", " a", 0),
        (StringPresence(), "it is (a).", " a", 1),
        (StringPresence(strip=False, ignore_case=True), "it is A.", " a", 1),
        (StringPresence(), "it is A.", "a", 0),
        (StringPresence(ignore_case=True), "DIE STRASSE", "Straße", 1),
    ]
    for scorer, response, reference, expected in cases:
        assert value(scorer, response, reference) == expected


def test_whitespace_cannot_both_count_and_be_ignored():
    with pytest.raises(ConfigError, match="normalize ignores whitespace, and strip=False does not; choose one"):
        ExactMatch(normalize=True, strip=False)
