"""Tables: CSV and Parquet."""

import csv
import gzip
import io
import re
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.errors import ConfigError, TraceError
from judgekit.formats.reading import read
from judgekit.traces.message import AIMessage, HumanMessage
from judgekit.traces.sample import ExpectedCall, Ranking, Sample


@pytest.fixture
def write(tmp_path):
    def write_file(content: str | bytes, name: str = "a.csv") -> Path:
        path = tmp_path / name
        found = content.encode() if isinstance(content, str) else content
        path.write_bytes(gzip.compress(found) if name.endswith(".gz") else found)
        return path

    return write_file


def read_both(path: Path, **how: object) -> tuple[list[Sample], list[str]]:
    """Return the samples, and the reported messages without their file."""
    met: list[TraceError] = []
    samples = list(read(path, on_error=met.append, **how))
    return samples, [str(error).removeprefix(str(path)).lstrip(", ") for error in met]


def test_the_header_tells_the_delimiter(write):
    for end in ["\n", "\r\n"]:
        for delimiter in [",", ";", "\t"]:
            for name in ["a.csv", "a.tsv", "a.csv.gz", "a.tsv.gz"]:
                table = [
                    ["id", "input", "a,b;c\td", "response"],
                    ["x", "q, or;\tp", "1", 'a "quoted"\nline'],
                    ["y", "r", "", ""],
                ]
                text = io.StringIO(newline="")
                csv.writer(text, delimiter=delimiter, lineterminator=end).writerows(table)
                first, second = read(write(text.getvalue(), name), on_error="raise")
                assert (first.id, [message.text for message in first.trace.messages]) == (
                    "x",
                    ["q, or;\tp", 'a "quoted"\nline'],
                )
                assert (first.fields, second.fields) == ({"a,b;c\td": "1"}, {})
                assert list(second.trace.messages) == [HumanMessage("r"), AIMessage("")]


cells = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), max_size=8)


@given(rows=st.lists(st.tuples(cells, cells), min_size=1, max_size=4), quoting=st.sampled_from([0, 1]))
def test_any_text_is_read_as_it_was_written(tmp_path_factory, rows, quoting):
    path = tmp_path_factory.getbasetemp() / "any.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, quoting=quoting).writerows([("response", "what, else"), *rows, ("last", "")])
    samples = list(read(path, encoding="utf-8", on_error="raise"))
    found = [(sample.trace.response, sample.fields.get("what, else", "")) for sample in samples]
    assert found == [*filter(any, rows), ("last", "")]


def test_an_empty_cell_is_absent_but_an_empty_response_is_one(write):
    header = "input,output,reference,label,task_time,results,other,group"
    [sample], _ = read_both(write(f"{header}\nq,,,,,,,g\n"))
    assert sample == Sample(id="0", trace=sample.trace, group="g")
    assert list(sample.trace.messages) == [HumanMessage("q"), AIMessage("")]


def test_cells_of_structures_are_json_and_those_of_numbers_are_numbers(write):
    cells = {
        "references": '["a"]',
        "reference_tool_calls": '[{"name": "f", "args": {"a": 1}}]',
        "ranking": '{"retrieved": ["d"], "relevance": {"d": 1}}',
        "metadata": '{"m": 1}',
        "results": '[{"score": 0.5, "domain": "d"}]',
        "task_time": "30",
        "task_quality": "0.9",
        "prediction_score": "0.25",
        "label": "1",
        "reference": "[1]",
        "size": "7",
    }
    text = io.StringIO()
    csv.writer(text).writerows([cells.keys(), cells.values()])
    [sample], told = read_both(write(text.getvalue()))
    assert told == []
    assert sample == Sample(
        id="0",
        trace=sample.trace,
        references=["a"],
        reference_tool_calls=[ExpectedCall("f", {"a": 1})],
        ranking=Ranking(retrieved=["d"], relevance={"d": 1}),
        metadata={"m": 1},
        prediction_score=0.25,
        label="1",
        reference="[1]",
        fields={"results": [{"score": 0.5, "domain": "d"}], "task_time": 30, "task_quality": 0.9, "size": "7"},
    )
    assert [type(sample.fields[name]) for name in ("task_time", "task_quality")] == [int, float]


def test_a_cell_that_does_not_fit_is_told_with_its_column_and_line(write):
    cases = [
        ("task_time", "soon", "task_time: expected a finite number, found 'soon'"),
        ("task_quality", "nan", "task_quality: expected a finite number, found nan"),
        ("original_score", "1e999", "original_score: expected a finite number, found inf"),
        ("prediction_score", "high", "prediction_score: Input should be a valid number, unable to parse"),
        ("references", "[1", "references: not JSON: EOF while parsing a list at line 1 column 2"),
        ("references", "['a']", "references: not JSON but Python's repr; write the table with to_jsonl() instead"),
        ("references", "\"[{'a': 1}]\"", "references: not JSON but Python's repr; write the"),
        ("documents", '"[1]"', "documents[0]: Input should be a valid string, found 1"),
        ("fields", "5", "fields: expected an object, found 5"),
    ]
    for column, cell, found in cases:
        samples, [told] = read_both(write(f"response,{column}\na,\nb,{cell}\nc,\n"))
        assert [sample.trace.response for sample in samples] == ["a", "c"]
        assert told.startswith(f"(line 3): {found}")


def test_a_row_of_another_length_is_told_and_the_rest_is_read(write):
    samples, told = read_both(write('input,output\n\n"q\nq",a\nr\nr,b,c\n\ns,d\n'))
    assert [(sample.id, sample.trace.response) for sample in samples] == [("0", "a"), ("3", "d")]
    assert told == [
        "(line 5): has 1 cell, but the first row names 2 columns",
        "(line 6): has 3 cells, but the first row names 2 columns",
    ]


def test_a_broken_quote_is_told_with_the_line_where_its_row_starts(write):
    samples, told = read_both(write('input,output\nq,a\n"x"y,b\nr,c\nz,"open\ns,d\n'))
    assert [sample.trace.response for sample in samples] == ["a", "c"]
    assert told == [
        "(line 3): not CSV: ',' expected after '\"'",
        "(line 5): not CSV: a quote that is opened in this row is never closed",
    ]


def test_a_table_without_rows_is_an_error(write):
    cases = ["input,output\n", "input,output", "input,output\n\n\n", "\n \n", "\ufeff"]
    for content in cases:
        for format_name in [None, "rows"]:
            path = write(content)
            with pytest.raises(TraceError, match=f"^{re.escape(str(path))}: contains no rows$"):
                list(read(path, format_name))


@pytest.mark.parametrize(
    ("content", "line", "found"),
    [
        ("input,output,input\na,b,c\n", 1, "two columns are named 'input'"),
        ("input,out\rput\na,b\n", 1, "not CSV: a carriage return outside quotes; lines end in \\n or \\r\\n"),
        ("\n\ninput,a,a\na,b,c\n", 3, "two columns are named 'a'"),
        (b"input,\xff\xffput\na,b\n", 1, "not UTF-8: byte 0xff at offset 6; set its encoding, such as cp1252"),
        ('"input\na,b\n', 1, "not CSV: a quote that is opened in this row is never closed"),
    ],
)
def test_a_header_that_cannot_be_used_is_an_error(write, content, line, found):
    path = write(content)
    with pytest.raises(TraceError, match=f"^{re.escape(f'{path} (line {line}): {found}')}"):
        read(path)


@pytest.mark.parametrize("empty", [",,", "", ",,,,", '"","",""', ","])
def test_rows_in_which_all_cells_are_empty_are_none(write, empty):
    samples, told = read_both(write(f"input,output,label\n{empty}\nq,a,x\n{empty}\n,,y\n{empty}\n{empty}\n"))
    assert [(sample.id, sample.trace.response, sample.label) for sample in samples] == [("0", "a", "x"), ("1", "", "y")]
    assert told == []


def test_a_column_without_a_name_has_its_number_and_matters_only_where_it_holds_something(write):
    samples, told = read_both(write("input,,output,,\nq,,a,,\nr,,b,x,\ns,,c,,\n"))
    assert [([message.text for message in sample.trace.messages], sample.fields) for sample in samples] == [
        (["q", "a"], {}),
        (["r", "b"], {"column 4": "x"}),
        (["s", "c"], {}),
    ]
    assert told == []


def test_a_column_without_a_name_can_be_given_one(write):
    path = write(",response\n7,a\n")
    [sample], told = read_both(path, columns={"column 1": "id"})
    assert (sample.id, told) == ("7", [])
    with pytest.raises(
        TraceError, match=r"no column is called 'respnse'. Did you mean 'response'\? Known: column 1, response$"
    ):
        list(read(path, columns={"respnse": "input"}))


@pytest.mark.parametrize(
    ("cell", "value"), [("0,9", 0.9), ("0.9", 0.9), ("-1,5", -1.5), ("30", 30), ("1e-3", 0.001), ("2,5e3", 2500.0)]
)
def test_decimals_have_commas_where_semicolons_separate(write, cell, value):
    [sample], told = read_both(write(f"input;task_time;note\nq;{cell};0,9\n"))
    assert (sample.fields, told) == ({"task_time": value, "note": "0,9"}, [])


@pytest.mark.parametrize("content", ["input;task_time\nq;1.000,5\n", 'input,task_time\nq,"0,9"\n'])
def test_a_number_that_is_none_is_told_as_it_stands(write, content):
    path = write(content)
    with pytest.raises(TraceError, match=r"task_time: expected a finite number, found '(1\.000,5|0,9)'$"):
        list(read(path, on_error="raise"))


def test_a_list_of_references_stands_in_its_own_column_and_booleans_stay(write):
    content = 'response,references,reference,label\na,"[""x"", ""y""]",,TRUE\nb,,"[""x""]",1.0\n'
    (first, second), _ = read_both(write(content))
    assert (first.references, first.label) == (("x", "y"), "TRUE")
    assert (second.reference, second.references, second.label) == ('["x"]', None, "1.0")


def test_names_in_the_header_are_stripped_and_blank_lines_before_it_skipped(write):
    [sample], _ = read_both(write("\ufeff\n\n input , output\nq,a\n"))
    assert [message.text for message in sample.trace.messages] == ["q", "a"]


def test_an_unknown_table_is_an_error_that_names_its_columns(write):
    path = write("color,size\nq,a\n")
    with pytest.raises(
        TraceError, match=f"^{re.escape(str(path))} \\(line 2\\): unknown format: found .*'color', 'size'"
    ):
        read(path)


def test_nul_bytes_and_cells_of_a_million_characters_are_text(write):
    long = "退款, " * 250_000
    samples, told = read_both(write(f'input,output\na\0b,"{long}"\n'))
    assert [message.text for message in samples[0].trace.messages] == ["a\0b", long]
    assert told == []


@pytest.fixture
def limit():
    """Yield the longest cell that the program around judgekit lets csv read."""
    before = csv.field_size_limit(10)
    yield 10
    csv.field_size_limit(before)


def test_the_size_of_cells_that_the_users_program_reads_stays_as_it_is(write, limit):
    path = write("input,output\n" + f"a,{'b' * 200_000}\n" * 2)
    readers = [read(path, on_error="raise") for _ in range(2)]
    for _ in range(2):
        with ThreadPoolExecutor(2) as threads:
            assert [len(found.trace.response) for found in threads.map(next, readers)] == [200_000] * 2
        assert csv.field_size_limit() == limit
        with pytest.raises(csv.Error, match="larger than field limit"):
            next(csv.reader(["b" * 11]))


@pytest.mark.parametrize("name", ["a.csv.gz", "a.parquet.gz"])
def test_a_packed_table_that_is_cut_off_is_an_error(write, name):
    path = write("response\n" + "a\n" * 1_000, name)
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(TraceError, match=f"^{re.escape(str(path))}: cannot be read: "):
        list(read(path, on_error="raise"))


def test_memory_holds_one_row_of_many(write):
    path = write("response\n" + "".join(f"{number % 10}{'x' * 20_000}\n" for number in range(300)))
    next(read(path))
    tracemalloc.start()
    try:
        assert sum(1 for _ in read(path)) == 300
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < path.stat().st_size / 10


def table(path: Path, columns: dict, **how: object) -> Path:
    pq.write_table(pa.table(columns), path, **how)
    return path


def test_parquet_keeps_lists_and_structs_and_makes_text_of_what_json_has_not(tmp_path):
    path = table(
        tmp_path / "a.parquet",
        {
            "input": ["q", None],
            "response": ["a", ""],
            "references": [["r", "s"], []],
            "results": [[{"score": 0.5, "domain": "d"}], None],
            "label": [1, 2],
            "task_time": [1.5, None],
            "at": [datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), None],
            "day": [date(2026, 1, 2), None],
            "price": [Decimal("1.20"), None],
            "raw": [b"a\xff", "é".encode()],
            "nanoseconds": pa.array([1, None], pa.timestamp("ns")),
            "of_day": pa.array([1, None], pa.time64("ns")),
        },
    )
    first, second = read(path, on_error="raise")
    assert list(first.trace.messages) == [HumanMessage("q"), AIMessage("a")]
    assert list(second.trace.messages) == [AIMessage("")]
    assert (first.references, first.label, second.references) == (("r", "s"), "1", ())
    assert first.fields == {
        "results": [{"score": 0.5, "domain": "d"}],
        "task_time": 1.5,
        "at": "2026-01-02T03:04:05+00:00",
        "day": "2026-01-02",
        "price": "1.20",
        "raw": "a\\xff",
        "nanoseconds": "1970-01-01 00:00:00.000000001",
        "of_day": "00:00:00.000000001",
    }
    assert second.fields == {"raw": "é"}


def test_arguments_in_parquet_lack_the_fields_of_other_calls(tmp_path):
    args = {"f": {"city": "Paris"}, "g": {"days": 3, "at": {"hour": 8}}}
    calls = [{"type": "function", "function": {"name": name, "arguments": each}} for name, each in args.items()]
    columns = {
        "messages": [[{"role": "assistant", "tool_calls": calls}]],
        "reference_tool_calls": [[{"name": name, "args": each} for name, each in args.items()]],
    }
    [sample] = read(table(tmp_path / "a.parquet", columns), on_error="raise")
    assert {made.call.name: made.call.args for made in sample.trace.tool_calls()} == args
    assert {call.name: call.args for call in sample.reference_tool_calls} == args


def test_maps_in_parquet_are_objects(tmp_path):
    args = pa.map_(pa.string(), pa.int64())
    calls = pa.list_(pa.struct([("name", pa.string()), ("args", args)]))
    called = [[{"name": "f", "args": [("n", 1)]}, {"name": "g", "args": []}]]
    columns = {"response": ["a"], "reference_tool_calls": pa.array(called, calls)}
    [sample] = read(table(tmp_path / "a.parquet", columns), on_error="raise")
    assert {call.name: call.args for call in sample.reference_tool_calls} == {"f": {"n": 1}, "g": {}}
    twice = table(tmp_path / "b.parquet", {"response": ["a"], "note": pa.array([[("n", 1), ("n", 2)]], args)})
    with pytest.raises(TraceError, match=r"b\.parquet: cannot be read: .*duplicate key was 'n'"):
        read(twice)


def test_a_time_beyond_the_calendar_in_parquet_is_an_error(tmp_path):
    late = table(tmp_path / "a.parquet", {"response": ["a"], "at": pa.array([2**62], pa.timestamp("us"))})
    with pytest.raises(TraceError, match=r"a\.parquet: cannot be read: date value out of range"):
        read(late)


def test_a_damaged_dictionary_in_arrow_is_an_error(tmp_path):
    wrong = pa.DictionaryArray.from_arrays(pa.array([5], pa.int8()), pa.array(["x"]), safe=False)
    rows = pa.table({"response": wrong})
    with pa.ipc.new_stream(tmp_path / "a.arrow", rows.schema) as stream:
        stream.write(rows)
    with pytest.raises(TraceError, match=r"a\.arrow: cannot be read: .*out of bounds"):
        read(tmp_path / "a.arrow")


def test_parquet_columns_are_renamed_and_joined(tmp_path):
    path = table(tmp_path / "a.parquet", {"问题": ["q", "p"], "回答": ["a", "b"]})
    known = table(tmp_path / "r.parquet", {"问题": ["p", "q"], "reference": [["x"], ["y", "z"]]})
    samples = read(path, references=known, columns={"问题": "input", "回答": "output"}, on_error="raise")
    assert [sample.references for sample in samples] == [("y", "z"), ("x",)]


def test_parquet_of_more_than_one_batch_is_read_in_order(tmp_path):
    path = table(tmp_path / "a.parquet", {"response": list(map(str, range(700)))}, row_group_size=300)
    assert [sample.trace.response for sample in read(path)] == list(map(str, range(700)))


def test_a_parquet_file_that_is_none_or_has_no_rows_is_an_error(tmp_path, write):
    with pytest.raises(TraceError, match=r"a.parquet: cannot be read: .*Parquet magic bytes not found"):
        read(write("input,output\nq,a\n", "a.parquet"))
    empty = table(tmp_path / "b.parquet", {"input": pa.array([], pa.string())})
    with pytest.raises(TraceError, match=f"^{re.escape(str(empty))}: contains no rows$"):
        read(empty)
    twice = tmp_path / "c.parquet"
    pq.write_table(pa.Table.from_arrays([pa.array(["a"])] * 2, ["input", "input"]), twice)
    with pytest.raises(TraceError, match=f"^{re.escape(str(twice))}: two columns are named 'input'$"):
        read(twice)


@pytest.mark.parametrize("writer", [pa.ipc.new_stream, pa.ipc.new_file])
def test_arrow_is_read_as_parquet_is(tmp_path, writer):
    path = tmp_path / "a.arrow"
    rows = pa.table({"output": list(map(str, range(700))), "references": [["r"]] * 700})
    with path.open("wb") as file, writer(file, rows.schema) as out:
        out.write_table(rows, max_chunksize=300)
    samples = list(read(path, on_error="raise"))
    assert [sample.trace.response for sample in samples] == list(map(str, range(700)))
    assert samples[0].references == ("r",)
    path.write_bytes(path.read_bytes()[:-40_000])
    with pytest.raises(TraceError, match=r"a\.arrow"):
        list(read(path, on_error="raise"))


BOMBS = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
from judgekit.errors import TraceError
from judgekit.formats.reading import read
for path in sys.argv[1:]:
    try:
        list(read(path, on_error="raise"))
        print("read")
    except TraceError as error:
        print(error.problem)
"""


def varint(number: int, length: int = 1) -> bytes:
    """A number as footers of Parquet hold it, padded to a length."""
    septets = [number << 1 >> 7 * at & 0x7F for at in range(max(length, -(-(number.bit_length() + 1) // 7)))]
    return bytes([*(septet | 0x80 for septet in septets[:-1]), septets[-1]])


def understated(path: Path) -> Path:
    """A copy of a file whose footer states that its large column, and with it the group, takes 1,000 bytes."""
    content, group = path.read_bytes(), pq.read_metadata(path).row_group(0)
    for size in (group.total_byte_size, group.column(1).total_uncompressed_size):
        stated = varint(size)
        head, tail = content[:-2_000], content[-2_000:]
        assert len(stated) == 5
        assert tail.count(stated) == 1
        content = head + tail.replace(stated, varint(1_000, len(stated)))
    forged = path.with_stem("forged")
    forged.write_bytes(content)
    assert pq.read_metadata(forged).row_group(0).column(1).total_uncompressed_size == 1_000
    return forged


def test_a_small_file_that_unpacks_to_gigabytes_is_refused_before_it_takes_them(tmp_path, run_python):
    often = pa.DictionaryArray.from_arrays(pa.array([0] * 1_000, pa.int32()), pa.array(["x" * 5_000_000]))
    in_a_list = pa.ListArray.from_arrays(pa.array([0, len(often)], pa.int32()), often)
    nothing = pa.ListArray.from_arrays(pa.array([0, 100_000_000], pa.int32()), pa.nulls(100_000_000, pa.bool_()))
    whole = pa.array(["x" * 600_000_000])
    rows = {"often": often, "in_a_list": in_a_list, "nothing": nothing, "whole": whole}
    late = pa.chunked_array([[""] * 100_000, whole])
    paths = []
    for name, cells in (rows | {"late": late}).items():
        paths.append(tmp_path / f"{name}.parquet")
        columns = pa.table({"response": ["a"] * len(cells), "documents": cells})
        pq.write_table(columns, paths[-1], compression="zstd", store_schema=False)
    paths.append(understated(tmp_path / "whole.parquet"))
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    for writer in (pa.ipc.new_file, pa.ipc.new_stream):
        for name in ("often", "whole"):
            paths.append(tmp_path / f"{name}.{writer.__name__}.arrow")
            batch = pa.record_batch({"response": rows[name]})
            with writer(paths[-1], batch.schema, options=options) as file:
                file.write_batch(batch)
    assert sum(path.stat().st_size for path in paths) < 500_000
    done = run_python("-c", BOMBS, *map(str, paths))
    refused = "a record batch is longer than 512 MB, unpacked, the limit; write JSON Lines, one record per line"
    assert done.stdout.splitlines() == [refused] * len(paths), done.stderr


def test_a_text_that_arrow_stores_once_and_few_rows_show_is_read(tmp_path):
    for number, column in enumerate(
        [
            pa.DictionaryArray.from_arrays(pa.array([0, None, 0], pa.int8()), pa.array(["a"])),
            pa.array(["a", None, "a"], pa.string_view()),
            pa.RunEndEncodedArray.from_arrays(pa.array([1, 2, 3], pa.int32()), pa.array(["a", None, "a"])),
        ]
    ):
        with pa.ipc.new_stream(
            path := tmp_path / f"{number}.arrow", pa.schema({"input": pa.string(), "response": column.type})
        ) as file:
            file.write_batch(pa.record_batch({"input": ["q"] * 3, "response": column}))
        assert [sample.trace.response for sample in read(path)] == ["a", None, "a"]


def test_without_pyarrow_parquet_is_an_error_that_says_what_to_install(tmp_path, monkeypatch):
    path = table(tmp_path / "a.parquet", {"response": ["a"]})
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ConfigError, match=r"^reading Parquet and Arrow needs pyarrow: pip install 'pyarrow>=20'$"):
        read(path)
