"""Shards of recordings: every record is in one of them, with the number that it has in all of them together."""

import codecs
import gzip
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.errors import TraceError
from judgekit.formats.readers.openai_chat import OpenAIChatReader
from judgekit.formats.reading import Recordings
from judgekit.shards import EVERYTHING, Shard
from judgekit.traces.message import AIMessage, HumanMessage
from judgekit.traces.sample import Sample

COUNTS = (1, 3, 16)

Found = tuple[list[tuple[int, Sample]], list[str]]


def found_in(path: Path, shard: Shard = EVERYTHING, **options: object) -> Found:
    """The samples of a shard with their numbers, and the problems that it reports."""
    problems: list[str] = []
    recordings = Recordings(path, shard=shard, **options)
    return list(recordings.numbered(lambda error: problems.append(str(error)))), problems


def found_in_shards(path: Path, count: int, **options: object) -> Found:
    """What all shards read, in the order of the numbers."""
    shards = [found_in(path, Shard(index, count), **options) for index in range(count)]
    samples = [pair for pairs, _ in shards for pair in pairs]
    return sorted(samples, key=lambda pair: pair[0]), [problem for _, problems in shards for problem in problems]


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
)
def test_any_cut_of_a_file_of_lines_gives_each_line_once_with_its_number(
    tmp_path_factory, texts, end, has_mark, has_last_end, count
):
    """CRLF, empty lines, a byte order mark, no last newline, characters of many bytes, and lines longer than a shard."""
    path = tmp_path_factory.mktemp("cut") / "rows.jsonl"
    content = end.join([json.dumps(row("first")), *texts]) + (end if has_last_end else "")
    path.write_bytes(codecs.BOM_UTF8 * has_mark + content.encode())
    samples, problems = found_in(path, format="rows")
    shared, reported = found_in_shards(path, count, format="rows")
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
    """A file that cannot be read is reported by each shard."""
    return sorted(dict.fromkeys(problems))


def test_shards_have_the_samples_of_the_whole_with_their_numbers(tmp_path):
    for files in FILES.values():
        path = written(tmp_path, files)
        samples, problems = found_in(path)
        for count in COUNTS:
            shared, reported = found_in_shards(path, count)
            assert shared == samples
            assert [number for number, _ in shared] == sorted({number for number, _ in shared})
            assert without_repeats(reported) == without_repeats(problems)


def test_records_are_dealt_out_in_turn_whatever_the_file(tmp_path):
    path = written(tmp_path, {"a.jsonl": lines(map(own, range(20))), "b.json": f"[{chat(1)}, {chat(2)}]"})
    numbers = [[number for number, _ in found_in(path, Shard(index, 4))[0]] for index in range(4)]
    assert numbers == [[*range(index, 22, 4)] for index in range(4)]


@pytest.mark.parametrize("make", [own, chat])
def test_the_records_of_other_shards_are_not_made_into_samples(tmp_path, monkeypatch, make):
    path = written(tmp_path, {"a.jsonl": lines(map(make, range(20)))})
    made = []
    parsed, read = Sample.model_validate_json, OpenAIChatReader.sample
    monkeypatch.setattr(Sample, "model_validate_json", lambda line: made.append(line) or parsed(line))
    monkeypatch.setattr(OpenAIChatReader, "sample", lambda *given: made.append(given) or read(*given))
    assert len(found_in(path, Shard(1, 4))[0]) == len(made) == 5


def test_lines_with_several_samples_of_our_own_are_counted_one_by_one(tmp_path):
    path = written(tmp_path, {"a.jsonl": lines([own(0), f"[{own(1)}, {own(2)}]", own(3)])})
    samples, problems = found_in(path)
    assert [(number, sample.id) for number, sample in samples] == [(number, f"s{number}") for number in range(4)]
    assert found_in_shards(path, 3) == (samples, problems) == (samples, [])


def test_a_trace_that_is_spread_over_shards_is_an_error_in_each(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(lines(json.dumps(row("x", trace_id=f"t{number % 20}")) for number in range(40)))
    for index in range(3):
        with pytest.raises(TraceError, match="40 records are parts of 20 traces"):
            found_in(path, Shard(index, 3))


def test_a_file_with_spread_traces_counts_in_each_shard_as_it_does_in_one_process(tmp_path):
    """It is left out as a whole, and each shard reports what is about whole files."""
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
    assert found_in(path, Shard(6, 7))[1] == problems


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
