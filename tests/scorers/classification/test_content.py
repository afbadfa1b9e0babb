"""Content words: which words of a text say something, and which of them are negated."""

import re

from hypothesis import given
from hypothesis import strategies as st
from nltk.sentiment.util import mark_negation

from judgekit.scorers.classification.content import NEGATED, content_words, load_word_list, published_words
from judgekit.scorers.text.words import splitter

AUTO = splitter("auto")
STOP_WORDS = load_word_list("stop_words")


def content(text: str) -> set[str]:
    return content_words(text, AUTO, STOP_WORDS)


def test_grammar_and_single_latin_letters_say_nothing():
    cases = [
        ("The capital of France is PARIS.", "capital france paris"),
        ("法国的首都是巴黎。", "法 国 首 巴 黎"),
        ("\uff30\uff21\uff32\uff29\uff33", "paris"),
        ("I refunded it; it's done.", "refunded done"),
        ("?! 🎉 ...", ""),
        ("à é x 7", "7"),
        ("订单 A5 已发货", "订 单 a5 已 发 货"),
        ("東京は日本の首都", "東 京 は 日 本 の 首"),
    ]
    for text, words in cases:
        assert content(text) == set(words.split())


def test_numbers_are_words_as_they_are_written():
    cases = [
        ("答案是-5", "答 案 -5"),
        ("order-5", "order 5"),
        ("5-6", "5-6"),
        (".5", ".5"),
        ("$12.50", "12.50"),
        ("价格3.14元", "价 格 3.14 元"),
        ("1,234,567.89", "1234567.89"),
        ("2024-05-01 at 10:30", "2024-05-01 10:30"),
        ("\uff15\uff10\uff10", "500"),
        ("5kg", "5 kg"),
        ("-1,250.5 %", "-1250.5%"),
        ("20\uff05 or 20 percent, 20 per cent", "20%"),
        ("百分之20", "20%"),
        ("20 percentage points", "20 percentage points"),
    ]
    for text, words in cases:
        assert content(text) == set(words.split())


def test_a_percentage_is_its_number_only_if_asked():
    for text in ("20%", "20 percent", "百分之20", "20"):
        assert content_words(text, AUTO, STOP_WORDS, ignore_percent=True) == {"20"}


def test_what_follows_a_negation_in_its_clause_carries_a_mark():
    cases = [
        ("We do not refund", "not refund_NEG"),
        ("We don't refund", "not refund_NEG"),
        ("We don\u2019t refund", "not refund_NEG"),
        ("No, we refund", "no refund"),
        ("Not 5 but 6. Refund 7", "not 5_NEG 6_NEG refund 7"),
        ("not refunded\nexchanged", "not refunded_NEG exchanged"),
        ("no refund without receipt", "no refund_NEG without_NEG receipt_NEG"),
        ("Paris, never London!", "paris never london_NEG"),
        ("不退款", "不 退_NEG 款_NEG"),
        ("不退款\uff0c换货", "不 退_NEG 款_NEG 换 货"),
        ("不退款、换货", "不 退_NEG 款_NEG 换_NEG 货_NEG"),
        ("没有收到退款", "没 收_NEG 到_NEG 退_NEG 款_NEG"),
        ("非常感谢", "非常 感 谢"),
        ("不是特别大", "不 特别_NEG 大_NEG"),
        ("未来不支持", "未来 不 支_NEG 持_NEG"),
        ("no doubtful refund", "no doubtful_NEG refund_NEG"),
        ("Volcano worries, no worries", "volcano worries no_worries"),
        ("是非法的", "非 法_NEG"),
    ]
    for text, words in cases:
        assert content(text) == {word.replace("no_", "no ") for word in words.split()}, text


@given(
    st.lists(
        st.sampled_from(["like", "movie", "acting", "not", "no", "never", "none", "nowhere", ".", ";", ":", "!", "?"])
    )
)
def test_negations_are_marked_as_nltk_marks_them(document):
    expected = {word for word in mark_negation(document) if word[0].isalpha()}
    assert content_words(" ".join(document), str.split, frozenset()) == expected


def test_negations_are_never_stop_words():
    for word in load_word_list("negations"):
        assert word not in STOP_WORDS
        assert content_words(f"{word} 巴黎", AUTO, frozenset({word, "not"})) == {word, f"巴{NEGATED}", f"黎{NEGATED}"}


def test_words_that_only_look_negated_mark_nothing():
    for word in load_word_list("no_negations"):
        assert any(part in load_word_list("negations") for part in (word.split() if word.isascii() else word))
        assert content_words(f"{word}巴黎", AUTO, frozenset()) == {word, "巴", "黎"}
        assert content_words(f"不，{word}，巴黎", AUTO, frozenset()) == {"不", word, "巴", "黎"}  # noqa: RUF001 - as it is written


def test_all_ways_to_split_a_text_see_negations():
    found = {
        name: content_words("不支持 refunds", splitter(name), STOP_WORDS) for name in ("whitespace", "rouge-score")
    }
    assert found == {
        "whitespace": {"不", "支持_NEG", "refunds_NEG"},
        "rouge-score": {"不", "refunds_NEG"},
    }


@given(st.text())
def test_any_text_has_content_words_of_which_none_is_blank(text):
    words = content(text)
    assert all(word.removesuffix(NEGATED).strip() for word in words)
    assert words == content(text + "\n" + text)


@given(st.text(alphabet=st.sampled_from("abAB 的不1_\uff0c.é")))
def test_published_words_are_those_of_the_published_recipe(text):
    stop_words = set("的是在了和有就不人都")
    words = set(re.findall(r"\b\w+\b", text.lower()))
    assert published_words(text, frozenset(stop_words)) == {w for w in words if w not in stop_words and len(w) > 1}
