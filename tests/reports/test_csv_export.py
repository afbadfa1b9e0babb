"""Rows as CSV."""

import csv
import io

from hypothesis import given
from hypothesis import strategies as st

from judgekit.reports.csv_export import csv_lines
from judgekit.runs.rows import Row
from judgekit.score import JudgeCall, Score

CALLS = [
    JudgeCall(judge="j", prompt="p", model="=m-1", system_fingerprint="fp_1", cost_usd=0.5),
    JudgeCall(judge="j", prompt="p", model="m-2", system_fingerprint="fp_1", cached=True),
]


def cells(*rows: Row) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO("".join(csv_lines(rows)), newline=""), strict=True))


def reasoned(reason: str) -> Row:
    return Row(index=0, sample_id="s", score=Score.scored("a", 0.5, reason=reason))


def test_a_score_is_a_line_with_what_is_known_of_it():
    score = Score.scored(
        "f1", 0.25, label="bad", confidence=0.75, reason="why\nnot", calls=CALLS, warnings=["one", "two"]
    )
    row = Row(index=3, sample_id="s", trace_id="t", group="g", domain="d", labels={"label": True}, score=score)
    assert cells(row) == [
        {
            "index": "3",
            "sample_id": "s",
            "trace_id": "t",
            "group": "g",
            "domain": "d",
            "labels.label": "true",
            "scorer": "f1",
            "status": "scored",
            "value": "0.25",
            "label": "bad",
            "confidence": "0.75",
            "reason": "why\nnot",
            "error": "",
            "warnings": "one; two",
            "judge_models": "'=m-1; m-2",
            "system_fingerprints": "fp_1",
            "requests": "1",
            "cached": "1",
            "tokens": "",  # nobody said how many were paid for
            "cost_usd": "0.5",
        }
    ]


def test_what_is_not_scored_has_no_value():
    for score in (Score.skipped("a", "x"), Score.abstained("a", "x"), Score.failed("a", "x", error="E")):
        (line,) = cells(Row(index=0, sample_id="s", score=score))
        assert (line["value"], line["status"], line["error"]) == ("", score.status, score.error or "")


def test_what_a_spreadsheet_would_run_has_an_apostrophe_before_it_and_numbers_and_other_text_stay_as_they_are():
    commands = ["=1+1", "+SUM(A1)", "-2+3+cmd|' /C calc'!A0", "@SUM(1)", "\uff1d1+1"]
    for text in (*commands, "\t=1", "\r=1", "\n=1", "-", "--1", "+1 2"):
        assert cells(reasoned(text))[0]["reason"] == f"'{text}"
    for text in ("-5", "+49123", "-1.5e-7", "1", "a=1", "'=1", " =1", "", "0"):
        assert cells(reasoned(text))[0]["reason"] == text


def test_a_formula_in_a_name_or_a_label_is_escaped_too():
    row = Row(index=0, sample_id="=id", domain="@d", labels={"=x": "=y"}, score=Score.scored("=s", 1, label="=l"))
    (line,) = cells(row)
    assert [line[name] for name in ("sample_id", "domain", "labels.=x", "scorer", "label")] == [
        "'=id", "'@d", "'=y", "'=s", "'=l"
    ]  # fmt: skip


def test_a_null_byte_and_an_escape_are_replaced():
    (line,) = cells(reasoned("a\0b\x1b[2J"))
    assert line["reason"] == "a\ufffdb\ufffd[2J"


@given(st.lists(st.text(), min_size=1))
def test_each_row_is_one_line_whatever_its_text(texts):
    lines = cells(*map(reasoned, texts))
    assert len(lines) == len(texts)
    for text, line in zip(texts, lines, strict=True):
        assert len(line["reason"].removeprefix("'")) == len(text.removeprefix("'"))
        assert line["reason"][:1] not in tuple("=@\t\r\n")
