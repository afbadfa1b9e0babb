"""Shards: their names, and the records that they own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.errors import ConfigError
from judgekit.shards import EVERYTHING, Shard


def test_a_shard_is_named_by_its_number_and_their_count():
    assert Shard.parse("3/16") == Shard(2, 16)
    assert str(Shard.parse("16/16")) == "16/16"


@pytest.mark.parametrize(
    "text", ["", "3", "0/16", "17/16", "1/0", "-1/3", "1/3 ", "a/b", "1/3/5", "\u0663/16", "1/9999999"]
)
def test_other_texts_name_no_shard(text):
    with pytest.raises(ConfigError, match="expected NUMBER/COUNT, from 1/16 to 16/16"):
        Shard.parse(text)


@given(st.integers(0, 10**14), st.integers(1, 999))
def test_each_number_is_in_one_shard(number, count):
    assert sum(number in Shard(index, count) for index in range(count)) == 1
    assert number in EVERYTHING
