"""Rows as files."""

import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgekit.reports.export import RowWriter
from judgekit.runs.results import Row
from judgekit.score import JudgeCall, Score


def row(index: int, scorer: str = "a") -> Row:
    return Row(sample_id=f"sample {index}", index=index, score=Score.scored(scorer, 1))


def keys(text: str) -> list[tuple[int, str]]:
    assert text == "" or text.endswith("\n")
    return [(line["index"], line["score"]["scorer"]) for line in map(json.loads, text.splitlines())]


@given(st.integers(1, 3), st.integers(0, 8).flatmap(lambda size: st.permutations(range(size))))
def test_lines_stand_in_the_order_of_the_samples_in_whatever_order_rows_come(scorers, order):
    names = "abc"[:scorers]
    out = io.StringIO()
    writer = RowWriter(out, scorers)
    there: set[int] = set()
    for index in order:
        for name in names:
            writer.add(row(index, name))
        there.add(index)
        gapless = next(number for number in range(len(order) + 1) if number not in there)
        assert keys(out.getvalue()) == [(number, name) for number in range(gapless) for name in names]
    writer.flush()
    assert keys(out.getvalue()) == [(index, name) for index in range(len(order)) for name in names]


def test_a_sample_is_written_once_all_its_rows_are_there():
    out = io.StringIO()
    writer = RowWriter(out, 2)
    writer.add(row(0, "a"))
    assert out.getvalue() == ""
    writer.add(row(0, "b"))
    assert keys(out.getvalue()) == [(0, "a"), (0, "b")]


@settings(max_examples=50)
@given(st.sets(st.integers(0, 12)).flatmap(lambda found: st.permutations(sorted(found))))
def test_flush_writes_in_order_what_waits_for_samples_that_did_not_come(order):
    out = io.StringIO()
    writer = RowWriter(out, 1)
    for index in order:
        writer.add(row(index))
    writer.flush()
    writer.flush()
    assert keys(out.getvalue()) == [(index, "a") for index in sorted(order)]


def test_lines_are_in_the_file_as_soon_as_they_are_written(tmp_path):
    path = tmp_path / "rows.jsonl"
    with path.open("w", encoding="utf-8") as file:
        RowWriter(file, 1).add(row(0))
        assert keys(path.read_text(encoding="utf-8")) == [(0, "a")]


@pytest.mark.parametrize("text", ["é 巴黎", "line\nbreak\u2028\x85", "\x1b[2J", '"quoted"\\'])
def test_a_line_is_the_whole_row(text):
    call = JudgeCall(judge="j", prompt="p@1", cost_usd=0.5, error=text)
    score = Score.scored(text, 0.1, reason=text, details={text: [text, None, 1.5]}, calls=[call])
    whole = Row(sample_id=text, index=0, score=score)
    out = io.StringIO()
    RowWriter(out, 1).add(whole)
    assert out.getvalue().count("\n") == 1
    assert Row.model_validate_json(out.getvalue()) == whole
