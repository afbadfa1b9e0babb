"""Shards of recordings: every record is in one of them, with the number that it has in all of them together."""

import codecs
import gzip
import io
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.errors import TraceError
from judgekit.formats.reading import Recordings
from judgekit.shards import EVERYTHING, Shard, ShardStart
from judgekit.traces.message import AIMessage, HumanMessage
from judgekit.traces.sample import Sample

COUNTS = (1, 2, 3, 16, 40)

Found = tuple[list[tuple[int, Sample]], list[str]]


def found_in(path: Path, shard: Shard = EVERYTHING, start: ShardStart | None = None, **options: object) -> Found:
    """The samples of a shard with their numbers, and the problems that it reports."""
    problems: list[str] = []
    recordings = Recordings(path, shard=shard, start=start, **options)
    return list(recordings.numbered(lambda error: problems.append(str(error)))), problems


def found_in_shards(path: Path, count: int, *, are_given: bool = False, **options: object) -> Found:
    """What all shards read, each of which looks for where it begins, or is given it."""
    starts = Recordings(path, shard=Shard(0, count), **options).shard_starts() if are_given else [None] * count
    shards = [found_in(path, Shard(index, count), start, **options) for index, start in enumerate(starts)]
    assert len(shards) == count
    return [pair for pairs, _ in shards for pair in pairs], [one for _, problems in shards for one in problems]


def row(text: str, **more: object) -> dict[str, object]:
    return {"input": text, "response": f"re: {text}", **more}


def own(number: int) -> str:
    return Sample.of([HumanMessage("Hi"), AIMessage(f"No {number}")], id=f"s{number}").model_dump_json()


def chat(number: int) -> str:
    said = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": f"No {number}"}]
    return json.dumps({"messages": said})


def claude_code(session: int) -> str:
    rows = (
        {"type": "user", "sessionId": f"c{session}", "uuid": "1", "message": {"role": "user", "content": "Hi"}},
        {"type": "assistant", "sessionId": f"c{session}", "uuid": "2", "parentUuid": "1",
         "message": {"role": "assistant", "content": [{"type": "text", "text": f"No {session}"}]}},
    )  # fmt: skip
    return "".join(f"{json.dumps(one)}\n" for one in rows)


def lines(texts: Iterable[str]) -> str:
    return "".join(f"{text}\n" for text in texts)


BLANK = st.sampled_from(["", " ", "\t", "  "])
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
RECORD = st.one_of(
    TEXT.map(lambda text: json.dumps(row(text), ensure_ascii=False)),
    TEXT.map(lambda text: json.dumps(row(text, id=text))),
    st.integers(100, 3_000).map(lambda size: json.dumps(row("é" * size), ensure_ascii=False)),
    st.sampled_from(["no JSON", '{"input": 1', "[]"]),
)


@given(
    st.lists(st.one_of(RECORD, BLANK), max_size=12),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
    st.booleans(),
    st.integers(1, 60),
    st.booleans(),
)
def test_any_cut_of_a_file_of_lines_gives_each_line_once_with_its_number(
    tmp_path_factory, texts, end, has_mark, has_last_end, count, are_given
):
    """CRLF, empty lines, a byte order mark, no last newline, characters of many bytes, and lines longer than a shard."""
    path = tmp_path_factory.mktemp("cut") / "rows.jsonl"
    content = end.join([json.dumps(row("first")), *texts]) + (end if has_last_end else "")
    path.write_bytes(codecs.BOM_UTF8 * has_mark + content.encode())
    samples, problems = found_in(path, format="rows")
    shared, reported = found_in_shards(path, count, are_given=are_given, format="rows")
    assert shared == samples
    assert sorted(reported) == sorted(problems)


FILES: dict[str, dict[str, str | bytes]] = {
    "own": {"a.jsonl": lines(map(own, range(23)))},
    "own without ids": {"a.jsonl": lines(own(number).replace(f'"id":"s{number}",', "") for number in range(23))},
    "chat": {"a.jsonl": lines(map(chat, range(23)))},
    "chat in a file of another name": {"a.log": lines(map(chat, range(23)))},
    "broken records": {"a.jsonl": lines([*map(own, range(4)), "{oops", *map(own, range(4, 9)), '{"id": 3}', "[]", own(9)])},
    "one document": {"a.json": json.dumps([json.loads(chat(number)) for number in range(9)])},
    "concatenated objects": {"a.json": "\n".join(json.dumps(row(str(one)), indent=1) for one in range(9))},
    "packed": {"a.jsonl.gz": gzip.compress(lines(map(own, range(9))).encode(), mtime=0)},
    "UTF-16": {"a.jsonl": lines(map(chat, range(9))).encode("utf-16")},
    "GB18030": {"a.jsonl": lines(json.dumps(row("退款已经到账了谢谢您的帮助" * 3), ensure_ascii=False) for _ in range(9)).encode("gb18030")},
    "a table": {"a.csv": "input,response\n" + lines(f'"{number}\nHi",Hello' for number in range(9))},
    "a log whose lines belong together": {"a.jsonl": lines(map(str.strip, (claude_code(one) for one in range(5))))},
    "several choices in a line": {
        "a.jsonl": lines(
            json.dumps({"request": {"messages": [{"role": "user", "content": "Hi"}]}, "response": {"object": "chat.completion", "choices": [{"index": at, "message": {"role": "assistant", "content": f"{number} {at}"}} for at in range(2)]}})
            for number in range(7)
        ),
        "b.jsonl": lines(map(chat, range(9))),
    },
    "lists of records": {"a.jsonl": lines(f"[{chat(number)}, {chat(number)}]" for number in range(7)), "b.jsonl": lines(map(chat, range(3)))},
    "pages": {"a.jsonl": lines([json.dumps({"data": [json.loads(chat(1)), json.loads(chat(2))], "has_more": False})] * 3), "b.jsonl": lines(map(chat, range(3)))},
    "a folder": {
        "a.jsonl": lines(map(own, range(7))),
        "b/1.jsonl": claude_code(1),
        "b/2.jsonl": claude_code(2),
        "c.json": json.dumps([json.loads(chat(number)) for number in range(5)]),
        "d.jsonl": lines(map(chat, range(9))),
        "e.csv": "input,response\nHi,Hello\nHi,Ho\n",
        "f.jsonl.gz": gzip.compress(lines(map(own, range(50, 53))).encode(), mtime=0),
    },
    "a folder with files that cannot be read": {
        "a.json": "{oops",
        "b.jsonl": lines(map(chat, range(9))),
        "c.jsonl": "\n\n",
        "d.jsonl": "",
        "e.jsonl.gz": gzip.compress(lines(map(own, range(50))).encode(), mtime=0)[:-9],
        "f.jsonl": lines([own(1), "{oops", own(2)]),
        "g.jsonl": "",
    },
}  # fmt: skip


def written(folder: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = folder / "all" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder / "all" if len(files) > 1 else next((folder / "all").iterdir())


def without_repeats(problems: Sequence[str]) -> list[str]:
    """A file that cannot be read is reported by each shard that begins in it."""
    return sorted(dict.fromkeys(problems))


@pytest.mark.parametrize("are_given", [False, True], ids=["looking", "given"])
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("files", FILES.values(), ids=FILES)
def test_shards_have_the_samples_of_the_whole_with_their_numbers(tmp_path, files, count, are_given):
    path = written(tmp_path, files)
    samples, problems = found_in(path)
    shared, reported = found_in_shards(path, count, are_given=are_given)
    assert shared == samples
    assert [number for number, _ in shared] == sorted({number for number, _ in shared})
    assert without_repeats(reported) == without_repeats(problems)


class Counting(io.FileIO):
    """A file that counts the bytes that are read of all files."""

    bytes_read = 0

    def readinto(self, buffer, /) -> int:
        count = super().readinto(buffer)
        Counting.bytes_read += count
        return count

    def readall(self) -> bytes:
        raise AssertionError("a file of lines is read as a whole")


@pytest.fixture
def bytes_of(monkeypatch):
    """Calls a function, and returns its result and the number of bytes that it reads of files."""
    monkeypatch.setattr("judgekit.formats.files.open_binary", lambda path: io.BufferedReader(Counting(path)))

    def count(call: Callable[[], object]) -> tuple[object, int]:
        before = Counting.bytes_read
        return call(), Counting.bytes_read - before

    return count


@pytest.mark.parametrize("make", [own, chat, lambda number: json.dumps(row("Hi", session_id=f"s{number}"))])
def test_a_shard_that_is_given_its_start_reads_its_own_part_and_the_beginning_of_the_file(tmp_path, bytes_of, make):
    """The encoding and the format of a file show at its beginning, of which each shard reads a megabyte and more."""
    count, buffer = 8, io.DEFAULT_BUFFER_SIZE
    path = written(tmp_path, {"a.jsonl": lines(map(make, range(160)))})
    with path.open("a") as file:
        file.writelines(f"{make(number)}{' ' * 30_000}\n" for number in range(160, 320))
    part = path.stat().st_size // count + 31_000 + buffer
    starts, read = bytes_of(lambda: list(Recordings(path, shard=Shard(0, count)).shard_starts()))
    beginning = (1 << 20) + 4 * 100 * 300
    passes = 1 if "session" not in make(1) else 2
    assert read <= passes * path.stat().st_size + beginning
    total = 0
    for index, start in enumerate(starts):
        (samples, _), read = bytes_of(lambda index=index, start=start: found_in(path, Shard(index, count), start))
        total += len(samples)
        assert read <= part + beginning + (path.stat().st_size if passes == 2 and not index else 0)
    assert total == 320
    _, read = bytes_of(lambda: found_in(path, Shard(count - 1, count)))  # which has to count the lines before
    assert read >= path.stat().st_size


def test_lines_are_spread_evenly_and_a_whole_file_is_in_the_shard_in_which_it_begins(tmp_path):
    path = written(tmp_path, {"a.jsonl": lines(map(own, range(160)))})
    sizes = [len(found_in(path, Shard(index, 16))[0]) for index in range(16)]
    assert sum(sizes) == 160
    assert all(9 <= size <= 11 for size in sizes)
    path = written(tmp_path / "other", {f"{name}.jsonl": claude_code(1) for name in "abcdefgh"})
    assert [len(found_in(path, Shard(index, 4))[0]) for index in range(4)] == [2, 2, 2, 2]


def test_a_line_with_several_records_after_others_is_reported_since_its_records_have_no_numbers(tmp_path):
    two = f"[{chat(1)}, {chat(2)}]"
    path = written(tmp_path, {"a.jsonl": lines([*map(chat, range(120)), two, *map(chat, range(30))])})
    shared, reported = found_in_shards(path, 3)
    assert [number for number, _ in shared] == [*range(120), *range(121, 151)]
    (problem,) = reported
    assert problem == (
        f"{path} (line 121): contains 2 conversations, but the first lines of the file contain one each, "
        "and shards count lines; write one per line with judgekit convert"
    )


def test_a_trace_that_is_spread_over_shards_is_an_error_in_each(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(lines(json.dumps(row("x", trace_id=f"t{number % 20}")) for number in range(40)))
    for index in range(3):
        with pytest.raises(TraceError, match="40 records are parts of 20 traces"):
            found_in(path, Shard(index, 3))


def test_a_spread_trace_is_found_in_a_file_of_a_guessed_encoding_too(tmp_path):
    text = "退款已经到账了谢谢您的帮助"
    rows = [json.dumps(row(text, trace_id=f"t{number % 20}"), ensure_ascii=False) for number in range(40)]
    path = tmp_path / "rows.jsonl"
    path.write_bytes(lines(rows).encode("gb18030"))
    with pytest.raises(TraceError, match="40 records are parts of 20 traces"):
        found_in(path, Shard(1, 3))


def test_a_file_with_spread_traces_before_a_shard_counts_as_it_does_in_one_process(tmp_path):
    """It is left out as a whole; and a notice about one file is that of the shards that read it."""
    spread = [json.dumps(row("x", trace_id=f"t{number % 20}")) for number in range(40)]
    shared = [json.dumps(row("x", session_id=f"t{number % 20}")) for number in range(40)]
    path = written(
        tmp_path, {"a.jsonl": lines(spread), "b.jsonl": lines(shared), "c.jsonl": lines(map(chat, range(40)))}
    )
    samples, problems = found_in(path)
    shards, reported = found_in_shards(path, 7)
    assert shards == samples
    assert without_repeats(reported) == without_repeats(problems)
    assert len(problems) == 2
    assert found_in(path, Shard(6, 7))[1] == []


@pytest.mark.parametrize("count", COUNTS)
def test_a_renamed_column_may_be_in_a_file_of_another_shard(tmp_path, count):
    rows = [json.dumps({"question": "Hi", "response": "Hello"})] * 9
    path = written(tmp_path, {"a.jsonl": lines([json.dumps(row("Hi"))] * 9), "b.jsonl": lines(rows)})
    assert found_in_shards(path, count, columns={"question": "input"}) == found_in(path, columns={"question": "input"})
    for index in range(count):
        _, problems = found_in(path, Shard(index, count), columns={"querry": "input"})
        assert sum("no column is called 'querry'" in one for one in problems) == 1
    with pytest.raises(TraceError, match="querry"):
        found_in(path / "a.jsonl", Shard(0, count), columns={"querry": "input"})


def test_references_that_match_nothing_are_reported_if_none_matches(tmp_path):
    """A shard cannot know what the samples of others match."""
    path = written(tmp_path, {"a.jsonl": lines(map(own, range(40)))})
    references = tmp_path / "refs.jsonl"
    references.write_text(lines(json.dumps({"id": f"s{number}", "reference": "x"}) for number in (0, 39, 99)))
    samples, problems = found_in(path, references=references)
    assert len(problems) == 1
    assert found_in_shards(path, 2, references=references) == (samples, [])
    _, problems = found_in(path, Shard(1, 3), references=references)
    assert ["samples have ids such as" in one for one in problems] == [True]
