"""Porter's stems, held against those of NLTK, which rouge-score has."""

import re
from itertools import product
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from nltk.stem.porter import PorterStemmer

from judgekit.scorers.text.porter import stem

THEIRS = PorterStemmer().stem
ENDINGS = re.findall(
    r"\w+",
    """
    able al alism aliti alize alli ance anci ant at ate ation ational ative ator biliti bl bli e ed eed eli ement
    ence enci ent entli er ful fulli fulness ible ic ical icate iciti ied ies ing ion ism iti ive iveness iviti iz
    ization ize izer li ll logi ment ness ogi ou ous ousli ousness s sion sses tion tional y
    """,
)


def differing(words) -> list[str]:
    return [word for word in words if stem(word) != THEIRS(word)]


def test_every_ending_after_short_beginnings():
    """After all beginnings of two letters, and a sample of longer ones."""
    random = Random(1)  # noqa: S311 - no secret
    beginnings = ["".join(letters) for length in range(3) for letters in product("aeytlsx", repeat=length)]
    beginnings += ["".join(random.choices("aeybtlsx", k=3)) for _ in range(40)]
    assert differing(beginning + ending for beginning in beginnings for ending in ENDINGS) == []


def test_endings_upon_endings():
    random = Random()  # noqa: S311 - no secret
    letters = "aeiouybcdfglmnpstwxz"
    words = {
        "".join([*random.choices(letters, k=random.randint(1, 7)), *random.choices(ENDINGS, k=random.randint(1, 3))])
        for _ in range(3_000)
    }
    assert differing(words) == []


@given(st.text(st.characters(codec="utf-8"), max_size=12).map(str.lower))
def test_any_text_in_small_letters(text):
    assert stem(text) == THEIRS(text)
