"""Shards: their names, and the bytes that they own."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.errors import ConfigError
from judgekit.shards import Shard


def test_a_shard_is_named_by_its_number_and_their_count():
    assert Shard.parse("3/16") == Shard(2, 16)
    assert str(Shard.parse("16/16")) == "16/16"


@pytest.mark.parametrize(
    "text", ["", "3", "0/16", "17/16", "1/0", "-1/3", "1/3 ", "a/b", "1/3/5", "\u0663/16", "1/9999999"]
)
def test_other_texts_name_no_shard(text):
    with pytest.raises(ConfigError, match="expected NUMBER/COUNT, from 1/16 to 16/16"):
        Shard.parse(text)


@given(st.integers(0, 10**14), st.integers(1, 999), st.data())
def test_each_offset_is_in_one_shard(size, count, data):
    ranges = [Shard(index, count).byte_range(size) for index in range(count)]
    offset = data.draw(st.integers(0, size))
    assert sum(start <= offset < stop for start, stop in ranges) == 1
    assert ranges[0].start == 0
    assert all(before.stop == after.start for before, after in pairwise(ranges))
