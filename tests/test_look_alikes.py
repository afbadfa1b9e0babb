"""Texts that look alike and differ, wherever they are shown beside each other."""

import unicodedata
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit import AIMessage, HumanMessage, Sample, ToolCall
from judgekit.errors import ConfigError
from judgekit.look_alikes import look_alike, look_alike_part, tell_apart
from judgekit.runs.rows import identity_differences
from judgekit.scorers.classification.answers import AnswerMatch
from judgekit.scorers.classification.labels import Classification
from judgekit.scorers.text.matches import ExactMatch, Similarity, StringPresence
from judgekit.scorers.text.structure import JSONDiff
from judgekit.scorers.tool_calls.f1 import ToolCallF1
from judgekit.traces.rendering import quoted_names

COMPOSED, DECOMPOSED = "caf\u00e9", "cafe\u0301"
PAIRS = {
    "NFC and NFD": ((COMPOSED, r"caf\u00e9"), (DECOMPOSED, r"caf\u0065\u0301")),
    "a no-break space": (("a b", "a b"), ("a\u00a0b", r"a\u00a0b")),
    "an ideographic space": (("北京 天气", "北京 天气"), ("北京\u3000天气", r"北京\u3000天气")),
    "a zero-width space": (("ab", "ab"), ("a\u200bb", r"a\u200bb")),
    "a byte order mark": (("ab", "ab"), ("\ufeffab", r"\ufeffab")),
    "direction marks": (("ab", "ab"), ("\u202aab\u202c", r"\u202aab\u202c")),
    "a soft hyphen": (("ab", "ab"), ("a\u00adb", r"a\u00adb")),
    "a variation selector": (("❤", "❤"), ("❤\ufe0f", r"❤\ufe0f")),
    "Hangul and its letters": (("한 가", r"한 \uac00"), ("한 \u1100\u1161", r"한 \u1100\u1161")),
    "the order of marks": (("a\u0323\u0301", "a\u0323\u0301"), ("a\u0301\u0323", r"a\u0301\u0323")),
    "a sign of its own": (("5 K", "5 K"), ("5 \u212a", r"5 \u212a")),
    "a filler": (("", ""), ("\u3164", r"\u3164")),
    "a tag": (("a", "a"), ("a\U000e0041", r"a\U000e0041")),
}


@pytest.mark.parametrize(("first", "second"), PAIRS.values(), ids=PAIRS)
def test_texts_that_look_alike_and_differ_have_escapes_where_they_differ(first, second):
    assert look_alike(first[0], second[0])
    assert tell_apart([first[0], second[0]]) == [first[1], second[1]]
    assert tell_apart([second[0], "another", first[0], second[0]]) == [second[1], "another", first[1], second[1]]


@pytest.mark.parametrize(("first", "second"), PAIRS.values(), ids=PAIRS)
def test_a_difference_that_would_be_cut_off_is_shown(first, second):
    texts = [f"{'x' * 300}{text}{'y' * 300}" for text, _ in (first, second)]
    shown = tell_apart(texts, 80)
    assert max(map(len, shown)) <= 80
    for text, (_, escaped) in zip(shown, (first, second), strict=True):
        assert f"x{escaped}y" in text
    assert tell_apart(["a" * 100 + "b", "a" * 100 + "c", "d"], 20) == ["...aaaaab", "...aaaaac", "d"]


@given(st.lists(st.text(), max_size=4))
def test_other_texts_stay_as_they_are(texts):
    if not any(look_alike(*pair) for pair in permutations(texts, 2)):
        assert tell_apart(texts) == texts


INVISIBLE = st.sampled_from(["\u200b", "\u200d", "\u00ad", "\u200e", "\u2060", "\ufe0f", "\u034f", "\u3164", "\u061c"])


@given(st.text(st.characters(exclude_characters="\\"), min_size=1), st.data(), st.booleans())
def test_no_two_texts_that_differ_are_shown_alike(text, data, cut):
    place = data.draw(st.integers(0, len(text)))
    other = data.draw(
        st.one_of(
            st.just(unicodedata.normalize("NFD", text)),
            st.just(unicodedata.normalize("NFC", text)),
            INVISIBLE.map(lambda mark: f"{text[:place]}{mark}{text[place:]}"),
            st.sampled_from("\u00a0\u2009\u3000\u2800").map(lambda space: text.replace(" ", space)),
        )
    )
    first, second = tell_apart([text, other], 40 if cut else None)
    if text == other:
        assert first == second
    else:
        assert first != second
        assert not look_alike(first, second)


def test_a_part_that_looks_like_a_text_is_found():
    assert look_alike_part(COMPOSED, f"un {DECOMPOSED} noir") == DECOMPOSED
    assert look_alike_part("a b", "x a\u00a0b y") == "a\u00a0b"
    assert look_alike_part("ab", f"x a\u200bb {COMPOSED}") == "a\u200bb"
    assert look_alike_part("ab", "x ab a\u200bb") is None
    assert look_alike_part("\u200b", "ab é") is None


def sample(response: str, reference: str, **facts) -> Sample:
    return Sample.of([HumanMessage("Hi"), AIMessage(response)], id="1", reference=reference, **facts)


REASONS = {
    "exact": (ExactMatch(), {}, r"the response is 'caf\u0065\u0301', which is not one of: 'caf\u00e9'"),
    "presence": (StringPresence(), {}, r"not in the response: 'caf\u00e9', which looks like 'caf\u0065\u0301'"),
    "similarity": (
        Similarity(),
        {},
        r"levenshtein similarity 0.600 to 'caf\u00e9', which looks like the response 'caf\u0065\u0301'",
    ),
    "label": (Classification(), {"label": COMPOSED}, r"predicted 'caf\u0065\u0301', true label 'caf\u00e9'"),
}


@pytest.mark.parametrize(("scorer", "facts", "reason"), REASONS.values(), ids=REASONS)
def test_reasons_show_the_difference(scorer, facts, reason):
    assert reason in scorer.score(sample(DECOMPOSED, COMPOSED, **facts)).reason


def test_words_show_the_difference():
    texts = sample("open shop\u2764\ufe0f now", "", label="closed shop\u2764")
    reason = AnswerMatch(tokenize="whitespace").score(texts).reason
    assert r"only expected: 'closed', 'shop\u2764'; only response: " in reason.replace("shop❤", r"shop\u2764")
    assert r"❤\ufe0f" in reason


def test_differences_of_json_show_the_difference_of_values_and_keys():
    found = JSONDiff().score(sample('{"a": "x\u00a0y", "cafe\u0301": 1}', '{"a": "x y", "caf\u00e9": 1}')).reason
    assert r'$.a expected "x y", found "x\u00a0y"' in found
    assert r"$.caf\u00e9 expected 1, found nothing" in found
    assert r"""$["caf\u0065\u0301"] expected nothing, found 1""" in found or r"$.caf\u0065\u0301 expected" in found


def test_reasons_and_diffs_of_tool_calls_show_the_difference_of_values_arguments_and_names():
    calls = [ToolCall("f", {"city": "S\u00e3o Paulo", "q": "a b"}), ToolCall("find\u00e9", {"x": 1})]
    wanted = [
        {"name": "f", "args": {"city": "Sa\u0303o Paulo", "q": "a b"}},
        {"name": "finde\u0301", "args": {"x": 1}},
    ]
    score = ToolCallF1().score(
        Sample.of([HumanMessage("Hi"), AIMessage("", tool_calls=calls)], id="1", reference_tool_calls=wanted)
    )
    assert r'args.city expected "S\u0061\u0303o Paulo", got "S\u00e3o Paulo"' in score.reason
    assert r'missing: "find\u0065\u0301"; extra: "find\u00e9"' in score.reason
    lines = str(score.diff())
    for part in (r'city: "S\u0061\u0303o', r'city: "S\u00e3o', r'"find\u0065\u0301"', r'"find\u00e9"'):
        assert part in lines
    assert '"a b"' not in score.reason


def test_names_that_look_alike_are_quoted():
    assert quoted_names(["search", "search\u200b", "find it"]) == {
        "search": "search",
        "search\u200b": '"search\\u200b"',
        "find it": '"find it"',
    }


def test_what_two_runs_differ_in_shows_the_difference():
    assert list(identity_differences({"pattern": COMPOSED}, {"pattern": DECOMPOSED})) == [
        r"pattern was 'caf\u00e9' and is 'caf\u0065\u0301'"
    ]


def test_an_unknown_name_that_looks_like_one_shows_the_difference():
    error = ConfigError.unknown("column", DECOMPOSED, [COMPOSED])
    assert str(error).startswith(r"no column is called 'caf\u0065\u0301'. Did you mean 'caf\u00e9'?")
