"""Counting looks at test labels: what is the same recording, and a file that several write and anybody may have changed."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from judgekit import AIMessage, HumanMessage, Run, Sample, SystemMessage, ToolCall, align
from judgekit.alignment.looks import LOOKS_FILE, Look, count_look, read_looks, sketch
from judgekit.errors import StoreError
from tests.alignment.conftest import judge, labels, recordings, tone

TEXT = "please send the parcel that I ordered last week to the harbor instead of my home"


def said(*texts: str) -> Sample:
    return Sample.of([HumanMessage(text) for text in texts], id=texts[0])


def look(number: int, tested: Sequence[Sample], others: Sequence[Sample] = ()) -> Look:
    sketches = (tuple(map(sketch, side)) for side in (tested, others))
    return Look(**dict(zip(("tested", "others"), sketches, strict=True)), alignment=f"{number:012x}")


def is_same(tmp_path: Path, earlier: Sequence[Sample], later: Sequence[Sample]) -> bool:
    count_look(look(1, earlier), tmp_path)
    return count_look(look(2, later), tmp_path) == 2


def test_recordings_of_which_half_of_the_successive_words_agree_are_the_same(tmp_path: Path) -> None:
    same = [said(f"{TEXT}."), said(f"Hello! {TEXT.upper()}"), said(TEXT.replace("harbor", "office"))]
    same.append(said(*TEXT.split(" to ")))
    same.append(Sample.of([SystemMessage("Be kind. " * 50), HumanMessage(TEXT)], id="other"))
    others = [said(" ".join(reversed(TEXT.split()))), said(f"{TEXT} {' '.join(f'w{n}' for n in range(20))}")]
    for number, changed in enumerate((*same, *others, said("home"), said("?"))):
        assert is_same(tmp_path / str(number), [said(TEXT)], [changed]) == (changed in same), changed.id


def test_long_recordings_are_recognized_by_a_few_hashes(tmp_path: Path) -> None:
    words = [f"word{number * number % 997}" for number in range(5_000)]
    edited = [word if number % 40 else "changed" for number, word in enumerate(words)]
    assert len(sketch(said(" ".join(words)))) == 32
    assert is_same(tmp_path, [said(" ".join(words))], [said(" ".join(edited))])


def test_scripts_without_spaces_have_words_too(tmp_path: Path) -> None:
    text = "\u8bf7\u628a\u6211\u4e0a\u5468\u8ba2\u8d2d\u7684\u5305\u88f9\u5bc4\u5230\u529e\u516c\u5ba4\u800c\u4e0d\u662f\u6211\u5bb6"
    assert is_same(tmp_path, [said(text)], [said(f"{text}\u8c22\u8c22")])


def test_recordings_without_words_are_known_by_what_was_called(tmp_path: Path) -> None:
    called = [Sample.of([AIMessage(tool_calls=[ToolCall(name)])], id=name) for name in "fg"]
    assert sketch(called[0]) != sketch(called[1])
    assert sketch(called[0]) == sketch(called[0].model_copy(update={"id": "other"}))
    assert is_same(tmp_path, called, called[:1])


def test_a_look_counts_if_half_of_the_recordings_tested_by_were_labeled_then(tmp_path: Path) -> None:
    a, b, c, d, e = (said(f"{TEXT.replace(' ', f' {name} ')}") for name in "abcde")
    assert count_look(look(1, [a, b, c]), tmp_path) == 1
    assert count_look(look(2, [a, d]), tmp_path) == 2
    assert count_look(look(3, [e]), tmp_path) == 1
    assert count_look(look(4, [d, e], [a]), tmp_path) == 3
    assert count_look(look(5, [a, b, d, e]), tmp_path) == 4  # three have half of them; the one of e a quarter
    assert [count_look(look(number, [a]), tmp_path) for number in (1, 2, 6)] == [1, 2, 5]
    assert [one.alignment[-1] for one in read_looks(tmp_path)] == ["1", "2", "3", "4", "5", "6"]


def test_looks_at_once_have_different_numbers(tmp_path: Path) -> None:
    tested = [said(f"{TEXT} {number}") for number in range(10)]
    with ThreadPoolExecutor(8) as threads:
        counted = list(threads.map(lambda number: count_look(look(number, tested), tmp_path), range(12)))
    assert sorted(counted) == [*range(1, 13)]


def test_a_line_that_another_process_is_adding_is_waited_for(tmp_path: Path) -> None:
    line = f"{look(1, recordings()).model_dump_json()}\n"
    path = tmp_path / LOOKS_FILE
    path.write_text(line[:-9])

    def finish() -> None:
        with path.open("a") as file:
            file.write(line[-9:])

    with ThreadPoolExecutor(1) as thread:
        read = thread.submit(read_looks, tmp_path)
        finish()
        assert [each.alignment for each in read.result()] == ["000000000001"]


def test_a_damaged_file_is_an_error_before_anything_is_asked(scored: Run) -> None:
    path, asked = Path(".judgekit/audits") / LOOKS_FILE, judge()
    path.parent.mkdir()
    for line in (
        *("no JSON", "{}", '{"alignment": 1, "tested": []}', '{"alignment": "0", "tested": [7]}'),
        *('{"alignment": "0", "tested": [["zz"]]}', '{"alignment": "0", "tested": [], "more": 1}'),
    ):
        path.write_text(f"{look(1, recordings()).model_dump_json()}\n{line}\n")
        with pytest.raises(StoreError, match=r"looks\.jsonl, after 1 lines: not a file of looks: .*; restore it"):
            align(tone(asked), scored, labels(recordings()))
    assert not asked.requests


def test_a_file_that_is_too_large_or_none_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / LOOKS_FILE
    with path.open("wb") as file:
        file.truncate(20_000_000)
    with pytest.raises(StoreError, match="expected a file of at most 16,000,000 bytes"):
        read_looks(tmp_path)
    path.unlink()
    path.mkdir()
    with pytest.raises(StoreError, match="expected a file"):
        read_looks(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be recorded"):
        count_look(look(1, []), tmp_path / "file")
