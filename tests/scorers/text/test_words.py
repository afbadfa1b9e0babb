"""Words of a text."""

import sys
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rouge_score.tokenize import tokenize as rouge_score_words

from judgekit.errors import ConfigError
from judgekit.scorers.text.words import _chinese_words, splitter

TEXTS = {
    "English": ("Don't stop; it's 3.5 km!", ["Don", "t", "stop", "it", "s", "3", "5", "km"]),
    "accents": ("naïve café, Straße", ["naïve", "café", "Straße"]),
    "accents apart": ("cafe\u0301", ["café"]),
    "Chinese": ("巴黎是法国的首都。", ["巴", "黎", "是", "法", "国", "的", "首", "都"]),
    "Chinese and Latin": ("用Python3写", ["用", "Python3", "写"]),
    "rare Chinese": ("㐀𠀀人々", ["㐀", "𠀀", "人", "々"]),
    "Japanese": ("サーバーABCへ", ["サ", "ー", "バ", "ー", "ABC", "へ"]),
    "Thai": ("กินข้าว", ["กิ", "น", "ข้", "า", "ว"]),
    "Lao": ("ສະບາຍ", ["ສ", "ະ", "ບ", "າ", "ຍ"]),
    "Khmer": ("ខ្មែរ។", ["ខ្", "មែ", "រ"]),
    "Burmese": ("မြန်မာ။", ["မြ", "န်", "မာ"]),
    "Korean": ("한국어 문장", ["한국어", "문장"]),
    "Russian": ("Привет, мир!", ["Привет", "мир"]),
    "Hindi": ("मैं हिन्दी।", ["मैं", "हिन्दी"]),
    "Arabic": ("مرحبًا، بك", ["مرحبًا", "بك"]),
    "wide digits": ("\uff11\uff12号", ["\uff11\uff12", "号"]),
    "punctuation": ("。、...—«»", []),
    "emoji": ("👍🏽 ❤️ 🇫🇷 👩‍👩‍👧", []),
    "half a character": ("a\ud800b", ["a", "b"]),
    "nothing": ("", []),
}


def test_words_are_found_in_any_script():
    for text, words in TEXTS.values():
        assert splitter("auto")(text) == words


@given(st.text(st.characters(max_codepoint=127)))
def test_text_in_ascii_has_the_words_of_rouge_score(text):
    assert splitter("auto")(text.lower()) == splitter("rouge-score")(text.lower()) == rouge_score_words(text, None)


@given(st.text())
def test_words_of_rouge_score_are_its_own_in_any_text(text):
    assert splitter("rouge-score")(text.lower()) == rouge_score_words(text, None)


@settings(max_examples=2 * settings.default.max_examples)
@given(st.text())
def test_no_letter_and_no_digit_is_lost(text):
    kept = {"L", "N"}
    composed = unicodedata.normalize("NFC", text)
    known = [one for one in composed if unicodedata.category(one)[0] in kept]
    found = [one for word in splitter("auto")(text) for one in word if unicodedata.category(one)[0] in kept]
    assert found == known


def test_white_space_alone_splits_where_punctuation_is_kept():
    assert splitter("whitespace")(" Hello,\tworld!\u3000你好。\n") == ["Hello,", "world!", "你好。"]


def test_jieba_finds_the_words_of_chinese_and_leaves_the_rest(tmp_path, monkeypatch):
    pytest.importorskip("jieba")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    _chinese_words.cache_clear()
    words = splitter("jieba")("我来到北京清华大学, hello-world 人々 café。")
    assert words == ["我", "来到", "北京", "清华大学", "hello", "world", "人", "々", "café"]
    assert list(tmp_path.iterdir()) == []


def test_without_jieba_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "jieba", None)
    _chinese_words.cache_clear()
    with pytest.raises(ConfigError, match=r"pip install 'jieba"):
        splitter("jieba")


def test_a_way_that_there_is_not_is_refused():
    with pytest.raises(ConfigError, match=r"called 'spaces'.* Known: auto, rouge-score, whitespace, jieba"):
        splitter("spaces")
