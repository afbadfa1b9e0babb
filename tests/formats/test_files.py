"""Files in common encodings."""

import gzip
import io
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from contextlib import suppress
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgekit.errors import ConfigError, TraceError
from judgekit.formats import compression
from judgekit.formats.files import File
from judgekit.formats.reading import read

if sys.version_info >= (3, 14):
    from compression import zstd

    zstd_zipfile = zipfile
else:
    from backports import zstd
    from backports.zstd import zipfile as zstd_zipfile

TEXTS = ["支持退款", "不支持退款", "两周内可以退款。"]
ROWS = [{"input": "能退款吗?", "response": text} for text in TEXTS]
LINES = "\n".join(json.dumps(row, ensure_ascii=False) for row in ROWS)
CONTAINERS = {
    "a.jsonl": LINES,
    "lines.json": LINES,
    "a.json": json.dumps(ROWS, ensure_ascii=False),
    "a.csv": "input,response\n" + "".join(f"能退款吗?,{text}\n" for text in TEXTS),
    "a.tsv": "input\tresponse\n" + "".join(f"能退款吗?\t{text}\n" for text in TEXTS),
}


def write(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    pack = {".gz": gzip.compress, ".zst": zstd.compress}.get(path.suffix, bytes)
    path.write_bytes(pack(content))
    return path


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "gb18030"])
def test_text_is_read_in_every_encoding_and_container(tmp_path, encoding):
    for name, packed in product(CONTAINERS, ["", ".gz", ".zst"]):
        path = write(tmp_path, name + packed, CONTAINERS[name].encode(encoding))
        for given_encoding in [encoding] if encoding == "gb18030" else [None, encoding]:
            samples = read(path, on_error="raise", encoding=given_encoding)
            assert [sample.trace.response for sample in samples] == TEXTS, path.name


@pytest.mark.parametrize(("encoding", "text"), [("latin-1", "naïve"), ("big5", "退款"), ("utf-16-le", "退款")])
def test_any_encoding_that_python_knows_can_be_given(tmp_path, encoding, text):
    path = write(tmp_path, "a.csv", f"input,output\n1,{text}\n".encode(encoding))
    [sample] = read(path, encoding=encoding, on_error="raise")
    assert sample.trace.response == text


def test_no_encoding_is_guessed(tmp_path):
    for name, content in CONTAINERS.items():
        path = write(tmp_path, name, content.encode("gb18030"))
        with pytest.raises(
            TraceError, match=r"not UTF-8: byte 0x.. at offset \d+; set its encoding, such as cp1252 or"
        ):
            list(read(path, on_error="raise"))


def test_references_in_another_encoding_are_an_error_until_it_is_named(tmp_path):
    path = write(tmp_path, "a.jsonl", LINES.encode())
    references = write(tmp_path, "r.csv", "input,reference\n能退款吗?,能\n".encode("gb18030"))
    with pytest.raises(TraceError, match=re.escape(f"{references} (line 2): not UTF-8: byte 0x")):
        read(path, references=references)


def test_one_line_in_another_encoding_is_told_and_the_rest_is_read(tmp_path):
    for name in ["a.jsonl", "a.csv"]:
        for bad in [b"caf\xe9", "退款".encode("gb18030"), b"\xff\xfe", "退".encode()[:2]]:
            good = ["“Wait,” it\u2019s \u2019s", "退款", "naïve"]
            cells = [*(text.encode() for text in good), bad]
            rows = [b'{"response": "%s"}' % cell if name == "a.jsonl" else b'"%s"' % cell for cell in cells]
            path = write(
                tmp_path, name, b"\n".join([*([] if name == "a.jsonl" else [b"response"]), *rows[:2], rows[3], rows[2]])
            )
            met: list[TraceError] = []
            assert [sample.trace.response for sample in read(path, on_error=met.append)] == good
            [error] = met
            assert (error.index, error.line) == (2, 3 if name == "a.jsonl" else 4)
            before = 14 if name == "a.jsonl" else 1
            assert error.problem == (
                f"not UTF-8: byte 0x{bad[3 if bad[0] == ord('c') else 0]:02x} at offset {before + (3 if bad[0] == ord('c') else 0)}; "
                "set its encoding, such as cp1252 or gb18030 (encoding=, --encoding)"
            )


@pytest.mark.parametrize(("name", "content"), [("a.jsonl", b'{"response": "\xb0"}'), ("a.csv", b'response\n"\xb0"')])
def test_a_line_that_has_not_the_given_encoding_is_told(tmp_path, name, content):
    path = write(tmp_path, name, content)
    met: list[TraceError] = []
    assert list(read(path, encoding="gb18030", format="rows", on_error=met.append)) == []
    [error] = met
    assert error.problem.startswith("not GB18030: byte 0xb0 at offset ")


def test_a_file_that_has_not_the_given_encoding_is_an_error(tmp_path):
    path = write(tmp_path, "a.csv", "output\n退".encode("utf-16")[:-1])
    with pytest.raises(TraceError, match=f"^{re.escape(str(path))}: not UTF-16.*: byte 0x.. at offset"):
        list(read(path))


@pytest.mark.parametrize("encoding", ["klingon", "rot13", "base64"])
def test_an_encoding_of_no_text_is_an_error_at_once(tmp_path, encoding):
    path = write(tmp_path, "a.csv", b"output\na\n")
    with pytest.raises(ConfigError, match=f"^unknown encoding '{encoding}'; use one that Python knows"):
        read(path, encoding=encoding)


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1"])
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_each_record_in_a_western_encoding_is_told_until_it_is_named(tmp_path, name, encoding):
    texts = ["für", "plain", "l\u2019école" if encoding == "cp1252" else "école"]
    rows = texts if name == "a.csv" else [json.dumps({"response": text}, ensure_ascii=False) for text in texts]
    path = write(tmp_path, name, "\n".join([*(["response"] if name == "a.csv" else []), *rows]).encode(encoding))
    met: list[TraceError] = []
    assert [sample.trace.response for sample in read(path, on_error=met.append)] == ["plain"]
    assert [error.index for error in met] == [0, 2]
    for error in met:
        assert re.fullmatch(
            r"not UTF-8: byte 0x.. at offset \d+; set its encoding, such as cp1252 or gb18030 \(encoding=, --encoding\)",
            error.problem,
        )
    assert [sample.trace.response for sample in read(path, encoding=encoding, on_error="raise")] == texts


def test_a_name_may_end_in_capital_letters(tmp_path):
    cases = ["A.CSV", "a.Csv", "A.TSV", "a.csv.GZ", "A.JSONL", "a.JsonL.gZ", "A.NDJSON", "A.JSON"]
    for name in cases:
        content = '{"response": "a"}\n{"response": "b"}' if "J" in name else "response\na\nb\n"
        path = tmp_path / name
        path.write_bytes(gzip.compress(content.encode()) if name.lower().endswith(".gz") else content.encode())
        assert [sample.trace.response for sample in read(path, on_error="raise")] == ["a", "b"]


KNOWN = ".json, .jsonl, .ndjson, .csv, .tsv, .parquet, .arrow, .eval, .traj, .txt, .log, all also with .gz or .zst"


@pytest.mark.parametrize("name", ["a.xlsx", "a.csv.zip", "a.xlsx.gz", "a.xlsx.zst"])
def test_a_name_that_ends_as_that_of_no_known_container_is_an_error(tmp_path, name):
    path = write(tmp_path, name, b"output\na\n")
    ending = Path(name.removesuffix(".gz").removesuffix(".zst")).suffix
    found = f"unknown suffix '{ending}'"
    with pytest.raises(TraceError, match=f"^{re.escape(f'{path}: {found}; known suffixes: {KNOWN}')}$"):
        read(path)
    with pytest.raises(TraceError, match=re.escape(found)):
        read(write(tmp_path, "a.jsonl", LINES.encode()), references=path)


@given(texts=st.lists(st.text('退款能不两周内可以。,“”ab "\n\r\\\u2019é', min_size=1), min_size=1, max_size=5))
def test_any_text_is_the_same_in_all_encodings(tmp_path_factory, texts):
    rows = [{"response": text} for text in texts]
    folder = tmp_path_factory.getbasetemp()
    for encoding in ("utf-8", "gb18030", "utf-16"):
        lines = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows).encode(encoding)
        path = write(folder, "texts.jsonl", lines)
        assert [sample.trace.response for sample in read(path, encoding=encoding)] == texts


# --- compressed files


def replies(path: Path, met: list[TraceError] | None = None) -> list[str | None]:
    return [sample.trace.response for sample in read(path, on_error="raise" if met is None else met.append)]


def test_how_a_file_is_packed_is_found_by_its_first_bytes(tmp_path):
    cases_1 = [gzip.compress, zstd.compress, bytes, lambda text: gzip.compress(text[:9]) + gzip.compress(text[9:])]  # fmt: skip
    for name in ["a.jsonl", "a.jsonl.gz", "a.jsonl.zst"]:
        for pack in cases_1:
            path = tmp_path / name
            path.write_bytes(pack(LINES.encode()))
            assert replies(path) == TEXTS


@pytest.mark.parametrize("name", ["a.jsonl.zst", "a.json.zst", "a.csv.zst"])
def test_a_zstd_file_that_is_cut_off_or_damaged_is_an_error_that_names_it(tmp_path, name):
    path = write(tmp_path, name, CONTAINERS[name.removesuffix(".zst")].encode() * 50)
    whole = path.read_bytes()
    for damaged in (whole[:-3], whole[:9] + b"\xff" * 9 + whole[18:]):
        path.write_bytes(damaged)
        with pytest.raises(TraceError, match=f"^{re.escape(str(path))}: cannot be read: "):
            replies(path)


@pytest.mark.parametrize("name", ["a.jsonl.zst", "a.eval"])
def test_what_is_missing_to_read_zstd_is_named(tmp_path, monkeypatch, name):
    path = write(tmp_path, name, LINES.encode()) if name.endswith(".zst") else archive(tmp_path, LOG)
    for module in ("backports.zstd", "backports.zstd.zipfile", "compression.zstd"):
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr(zipfile, "ZIP_ZSTANDARD", None, raising=False)
    with pytest.raises(TraceError, match=re.escape(f"{path}: is compressed with zstd; to read it, pip install")):
        replies(path)


BOMBS = {
    "a.jsonl.gz": "line 2 is longer than 1 MB",
    "a.csv.zst": "line 2 is longer than 1 MB",
    "a.json.zst": "decompressed, it is longer than 1 MB",
    "a.txt.gz": "decompressed, it is longer than 1 MB",
}


@pytest.mark.parametrize(("name", "found"), BOMBS.items())
def test_what_unpacks_to_more_than_any_record_is_not_read_on(tmp_path, monkeypatch, name, found):
    monkeypatch.setattr(compression, "MAX_BYTES", 1 << 20)
    head = {"a.json.zst": "[", "a.csv.zst": "response"}.get(name, '{"response": "a"}')
    path = write(tmp_path, name, f"{head}\n".encode() + b" " * (5 << 20))
    with pytest.raises(TraceError, match=re.escape(f"{path}: {found}, the limit; write JSON Lines")):
        replies(path)


def test_a_document_that_is_too_large_is_refused_with_the_command_that_splits_it(tmp_path, monkeypatch):
    """It would be held in memory, three times as large as it is."""
    rows = [{"input": "Hi", "response": f"No {number} {'x' * 400}"} for number in range(300)]
    path = write(tmp_path, "a.json", json.dumps(rows).encode())
    expected = replies(path)
    monkeypatch.setattr(compression, "MAX_BYTES", 100_000)
    with pytest.raises(TraceError, match=re.escape(f"{path}: it is longer than 0 MB, the limit;")) as refused:
        replies(path)
    command = str(refused.value).partition("one record per line: ")[2]
    subprocess.run(command.replace("FILE", path.name), shell=True, cwd=tmp_path, check=True)  # noqa: S602 - our own
    assert replies(tmp_path / "records.jsonl") == expected


# --- archives of Inspect logs

LOG = {
    "_journal/start.json": {"eval": {"task": "t"}},
    "samples/b_epoch_1.json": {"id": "b", "epoch": 1, "messages": ["b"]},
    "samples/a_epoch_1.json": {"id": "a", "epoch": 1, "messages": ["a"]},
    "summaries.json": [],
    "header.json": {"version": 2, "status": "success", "eval": {"task": "t"}},
}


def archive(folder: Path, members: dict[str, object], method: int = 93, name: str = "a.eval") -> Path:
    path = folder / name
    with zstd_zipfile.ZipFile(path, "w", method) as file:
        for member, content in members.items():
            file.writestr(member, content if isinstance(content, str | bytes) else json.dumps(content))
    return path


def records(path: Path) -> list[object]:
    return [record.value for record in File.locate(path).archived()]


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, 93])
def test_an_archive_is_its_samples_each_with_the_header(tmp_path, method):
    header, *samples = LOG["header.json"], LOG["samples/b_epoch_1.json"], LOG["samples/a_epoch_1.json"]
    assert records(archive(tmp_path, LOG, method)) == [{"header": header, "sample": sample} for sample in samples]
    running = {name: content for name, content in LOG.items() if name != "header.json"}
    started = LOG["_journal/start.json"]
    assert records(archive(tmp_path, running, method)) == [{"header": started, "sample": sample} for sample in samples]


def test_damaged_members_are_told_one_by_one(tmp_path):
    path = archive(tmp_path, {**LOG, "header.json": "{", "samples/c.json": "{oops", "samples/d.json": {"id": "d"}}, 8)
    content = path.read_bytes()
    with zipfile.ZipFile(path) as file:
        info = file.getinfo("samples/b_epoch_1.json")
        start = info.header_offset + 30 + len(info.filename)
    path.write_bytes(content[:start] + b"\xff" * 8 + content[start + 8 :])
    broken_header, b, a, c, d = records(path)
    assert [str(error).partition(":")[0] for error in (broken_header, b, c)] == [
        "header.json",
        "samples/b_epoch_1.json",
        "samples/c.json",
    ]
    assert (a["sample"]["id"], d["sample"]["id"], a["header"]) == ("a", "d", LOG["_journal/start.json"])


@pytest.mark.parametrize(
    ("members", "method", "found"),
    [
        ({"a.txt": "x"}, 8, "contains no samples, so it is not an Inspect log"),
        (LOG, zipfile.ZIP_BZIP2, "header.json: compression method 12 is not one that Inspect writes"),
    ],
)
def test_another_archive_is_an_error(tmp_path, members, method, found):
    with pytest.raises(TraceError, match=re.escape(found)):
        replies(archive(tmp_path, members, method))


def test_a_member_that_unpacks_to_more_than_any_record_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(compression, "MAX_BYTES", 1 << 20)
    path = archive(tmp_path, {**LOG, "samples/a_epoch_1.json": b" " * (5 << 20)})
    assert "samples/a_epoch_1.json: decompressed, it is longer than 1 MB" in str(records(path)[1])


# --- names that do not show the content

SPANS = "\n".join(json.dumps({"response": text, "deep": [{"a": 1}]}, indent=4, ensure_ascii=False) for text in TEXTS)


@pytest.mark.parametrize("name", ["a.json", "a.txt", "a.log", "a", "a.txt.gz"])
def test_objects_one_behind_another_are_records_and_a_broken_one_is_told(tmp_path, name):
    assert replies(write(tmp_path, name, SPANS.encode())) == TEXTS
    met: list[TraceError] = []
    broken = SPANS.replace(f'"{TEXTS[1]}"', f'"{TEXTS[1]}')
    assert replies(write(tmp_path, name, broken.encode()), met) == [TEXTS[0], TEXTS[2]]
    [error] = met
    assert (error.index, error.line) == (1, 9)


def test_a_file_of_text_is_what_it_holds(tmp_path):
    for name in ["a.txt", "a.log", "a", "a.log.zst"]:
        for content in ["a.jsonl", "a.json"]:
            path = write(tmp_path, name, CONTAINERS[content].encode())
            assert replies(path) == TEXTS
            assert File.locate(path).container == ("lines" if content == "a.jsonl" else "document")


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstd.compress])
@pytest.mark.parametrize("content", [*CONTAINERS.values(), SPANS], ids=[*CONTAINERS, "objects"])
def test_standard_input_is_what_it_holds_and_leaves_nothing_behind(tmp_path, monkeypatch, content, pack):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(pack(content.encode()))))
    samples = list(read("-", on_error="raise"))
    assert [sample.trace.response for sample in samples] == TEXTS
    assert {sample.trace.source.path for sample in samples} == {"-"}
    assert list(tmp_path.iterdir()) == []


def test_standard_input_may_be_an_archive_a_parquet_file_or_nothing(tmp_path, monkeypatch):
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pytest.importorskip("pyarrow").table({"response": TEXTS})
    parquet.write_table(table, tmp_path / "a.parquet")
    for path, container in ((archive(tmp_path, LOG), "archive"), (tmp_path / "a.parquet", "parquet")):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
        assert File.locate("-").container == container
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    with pytest.raises(TraceError, match=r"^-: is empty$"):
        read("-")


# --- damage

WHOLE = {
    **{f"{name}{packed}": text for name, text in CONTAINERS.items() for packed in ("", ".gz", ".zst")},
    "spans.log": SPANS,
    "a.eval": "",
}


@pytest.mark.parametrize("name", WHOLE)
@settings(max_examples=settings.default.max_examples // 2)
@given(data=st.data())
def test_a_file_that_is_cut_off_or_has_flipped_bits_is_read_or_refused(tmp_path_factory, name, data):
    folder = tmp_path_factory.getbasetemp()
    path = archive(folder, LOG, data.draw(st.sampled_from([0, 8, 93]))) if name == "a.eval" else write(folder, name, WHOLE[name].encode())  # fmt: skip
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(0, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(content[: data.draw(st.integers(1, len(content)) | st.just(len(content)))])
    with suppress(TraceError):
        list(read(path, on_error=lambda _: None))


def test_a_folder_of_a_hugging_face_dataset_is_its_tables(tmp_path):
    """`save_to_disk` writes one folder per split, with tables and two metadata files."""
    pa = pytest.importorskip("pyarrow")
    for split, answers in (("test", ["a"]), ("train", ["b", "c"])):
        folder = tmp_path / "data" / split
        folder.mkdir(parents=True)
        rows = pa.table({"input": ["q"] * len(answers), "response": answers})
        with (folder / "data-00000-of-00001.arrow").open("wb") as file, pa.ipc.new_stream(file, rows.schema) as out:
            out.write_table(rows)
        (folder / "dataset_info.json").write_text('{"features": {"input": {"dtype": "string"}}}')
        (folder / "state.json").write_text('{"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}')
    (tmp_path / "data" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    for folder, found in ((tmp_path / "data", ["a", "b", "c"]), (tmp_path / "data" / "train", ["b", "c"])):
        assert [sample.trace.response for sample in read(folder, on_error="raise")] == found


def test_a_file_of_such_a_name_is_read_where_no_tables_are(tmp_path):
    (tmp_path / "state.json").write_text('{"input": "q", "response": "a"}')
    [sample] = read(tmp_path, on_error="raise")
    assert sample.trace.response == "a"
