"""Texts without what does not change an answer."""
# ruff: noqa: RUF001 - signs of many scripts are what is tested

import string
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from judgekit.scorers.text.normalization import fold_text, normalize_text

WIDE = {code: code + 0xFEE0 for code in range(0x21, 0x7F)} | {0x20: 0x3000}
"""Each character of ASCII that can be seen, and its fullwidth form."""
SAME = [
    ("  Paris\n", "Paris"),
    ("Yes?!", "yes"),
    ("¿Dónde?", "dónde"),
    ('"Paris."', "Paris"),
    ("“‘Paris’”", "Paris"),
    ("« Paris »", "Paris"),
    ("「北京」。", "北京"),
    ("skII 神仙水", "skii神仙水"),
    ("ｓｋＩＩ　神仙水", "SKII神仙水"),
    ("你好， 世界", "你好，世界"),
    ("ﾊﾞｲｸ NC750 ﾉ 本", "バイクNC750ノ本"),
    ("iPhone 15 รุ่น ใหม่", "iphone 15รุ่นใหม่"),
    ("New\u00a0 York", "new york"),
    ("Straße", "STRASSE"),
    ("cafe\u0301", "CAFÉ"),
    ("ﬁnal", "final"),
    ("5%.", "5%"),
]
DIFFERENT = [
    *("5", "-5", "+5", "5%", "$5", "€5", ".5", "5.0", "~5", "<5", "5+", "5'", '5"', "5°", "#5", "/5", "5*", "(5)"),
    *("10\u00b2", "102", "10\u2082", "10\u207b\u00b2", "3.14", "314", "3,14", "3:14", "3 14"),
    *("(0, 5]", "[0, 5)", "0, 5", "c", "c++", "c#", ".net", "net", "@a", "a", "*a"),
    *("第 1 2 章", "第12章", "神仙水 sk II", "神仙水skII", "새 책", "새책", "か \u3099", "が"),
    *("不支持", "支持", "no", "not", "don't", "dont", "a-b", "ab", "a b", "a, b", "a/b"),
    *("", ".", "?", "!", "¿.", "...", '"', "''", "'''", '"."', "()", "[]", "{}", "-", "--", "😀", "🙂", "👍", "👍🏽"),
]


def test_case_width_white_space_and_punctuation_around_do_not_count():
    for one, other in SAME:
        assert normalize_text(one) == normalize_text(other)


def test_digits_signs_and_what_stands_within_do_count():
    assert len({normalize_text(text) for text in DIFFERENT}) == len(DIFFERENT) == len(set(DIFFERENT))


@given(st.text(string.printable.strip() + " "))
def test_any_text_is_its_fullwidth_form(text):
    assert normalize_text(text.translate(WIDE)) == normalize_text(text)


@given(st.text(string.ascii_letters + string.digits + "é北。.,!- "), st.text(" \t\n\u3000"), st.text(".,;:!?。！"))
def test_what_stands_around_and_case_are_free(text, space, end):
    if any(map(str.isalnum, text)):
        assert normalize_text(f'{space}"{text.upper()}{end}"{space}{end}') == normalize_text(text.strip('"'))


@given(st.text())
def test_a_normalized_text_stays_as_it_is(text):
    once = normalize_text(text)
    assert normalize_text(once) == once
    assert bool(once) == bool(text.strip())
    assert fold_text(fold_text(text)) == fold_text(text)


@given(st.text(st.characters(exclude_characters="\u00b2\u00b3\u00b9\u2070\u2074\u2075\u2076\u2077\u2078\u2079")))
def test_forms_of_one_character_are_those_of_unicode(text):
    """All compatibility forms are one; the digits that stand above or below the line are left alone."""
    if not any("\u2080" <= character <= "\u2089" for character in text):
        assert fold_text(unicodedata.normalize("NFKC", text)) == fold_text(text)
