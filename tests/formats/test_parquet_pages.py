"""Sizes of pages, held against files without compression, whose pages are as long as they state."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from judgekit.errors import TraceError
from judgekit.formats.arrow_batches import page_sizes

CELLS = {
    "text": [f"text {number} " * (number % 50) for number in range(5_000)],
    "one of few": [f"{number % 7}" * 3 for number in range(5_000)],
    "number": [None if number % 9 == 0 else number * 0.5 for number in range(5_000)],
    "lists": [[{"name": "f", "values": [number] * (number % 4)}] * (number % 3) for number in range(5_000)],
}


def sizes(path) -> list[list[int]]:
    """The sizes of the pages of each column chunk."""
    metadata = pq.read_metadata(path)
    with path.open("rb") as file:
        return [
            list(
                page_sizes(
                    file,
                    chunk.dictionary_page_offset if chunk.has_dictionary_page else chunk.data_page_offset,
                    chunk.total_compressed_size,
                )
            )
            for group in map(metadata.row_group, range(metadata.num_row_groups))
            for chunk in map(group.column, range(group.num_columns))
        ]


@pytest.mark.parametrize("compression", ["snappy", "gzip", "zstd", "brotli", "lz4"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_pages_have_the_sizes_that_they_have_without_compression(tmp_path, compression, version):
    options = {
        "data_page_version": version,
        "data_page_size": 500,
        "write_batch_size": 100,
        "row_group_size": 2_000,
        "write_statistics": True,
    }
    plain, packed = tmp_path / "plain.parquet", tmp_path / "packed.parquet"
    pq.write_table(pa.table(CELLS), plain, compression="none", **options)
    pq.write_table(pa.table(CELLS), packed, compression=compression, write_page_checksum=True, **options)
    pages = sizes(plain)
    assert sizes(packed) == pages
    group = pq.read_metadata(plain).row_group(0)
    for at, chunk_pages in enumerate(pages[: group.num_columns]):
        headers = group.column(at).total_uncompressed_size - sum(chunk_pages)
        assert 0 < headers < 500 * len(chunk_pages)
    assert max(map(len, pages)) > 3


def test_a_header_with_long_statistics_is_read_to_its_end(tmp_path):
    path = tmp_path / "a.parquet"
    text = pa.table({"text": [letter * 30_000 for letter in "abc"]})
    pq.write_table(text, path, data_page_size=1, use_dictionary=False, write_batch_size=1)
    [pages] = sizes(path)
    assert [size // 1_000 for size in pages] == [30, 30, 30]


@pytest.mark.parametrize(
    "content", [b"", b"\x15", b"\x15\x00\x00", b"\x1d\x00", b"\x15\x00\x15\x01\x15\x02\x00", b"\x1c" * 20]
)
def test_a_damaged_header_is_an_error(tmp_path, content):
    path = tmp_path / "a"
    path.write_bytes(content)
    with path.open("rb") as file, pytest.raises(TraceError, match="a page header of Parquet"):
        list(page_sizes(file, 0, 1_000))
