"""The rows of a run as a table, and as a table of pandas."""

import json
import sys

import pytest

from judgekit.errors import ConfigError
from judgekit.runs.columns import row_columns
from judgekit.runs.frames import to_pandas
from judgekit.runs.rows import Row
from judgekit.score import JudgeCall, Score
from judgekit.traces.message import Usage


def row(index: int = 0, score: Score | None = None, **labels: object) -> Row:
    return Row(index=index, sample_id=f"s{index}", score=score or Score.scored("f1", 0.5), labels=labels)


def kinds(*rows: Row) -> dict[str, str]:
    return {column.name: column.kind for column in row_columns(rows) if column.name.startswith("labels")}


def cell(name: str, one: Row, *others: Row) -> object:
    (column,) = (column for column in row_columns([one, *others]) if column.name == name)
    return column.get_cell(one)


def test_a_label_has_a_column_of_the_kind_of_its_values():
    cases = [
        ([True, False], "boolean", [True, False]),
        ([1, 2], "integer", [1, 2]),
        ([1, 0.5], "number", [1.0, 0.5]),
        (["a", "b"], "text", ["a", "b"]),
        (["a", 1, True, 0.5], "text", ["a", "1", "true", "0.5"]),
        ([True, 1], "text", ["true", "1"]),
        ([2**63 - 1, -(2**63)], "integer", [2**63 - 1, -(2**63)]),
        ([1, 2**63], "text", ["1", str(2**63)]),
    ]
    for values, kind, cells in cases:
        rows = [row(index, reward=value) for index, value in enumerate(values)]
        assert kinds(*rows) == {"labels.reward": kind}
        found = [cell("labels.reward", one, *rows) for one in rows]
        assert [(type(one), one) for one in found] == [(type(one), one) for one in cells]
        assert cell("labels.reward", row(9), *rows) is None


def test_labels_of_too_many_names_stand_in_one_column():
    rows = [row(index, **{f"turn {index}": index}) for index in range(101)]
    assert kinds(*rows[:100]) == {f"labels.turn {index}": "integer" for index in range(100)}
    assert kinds(*rows) == {"labels": "text"}
    assert json.loads(cell("labels", rows[7], *rows)) == {"turn 7": 7}
    assert cell("labels", row(), *rows) is None


PAID = JudgeCall(judge="j", prompt="p", usage=Usage(input_tokens=10, output_tokens=1), cost_usd=0.5)
CACHED = PAID.model_copy(update={"cached": True})
UNKNOWN = JudgeCall(judge="j", prompt="p")
UNREACHED = JudgeCall(judge="j", prompt="p", error="UnreachableError")


def test_what_is_not_known_of_a_cost_is_no_number():
    for calls, spent in (
        ([], (0, 0, 0, 0)),
        ([PAID, PAID, CACHED], (2, 1, 22, 1)),
        ([CACHED], (0, 1, 0, 0)),
        ([PAID, UNKNOWN], (2, 0, None, None)),
        ([UNREACHED, UNREACHED, PAID], (1, 0, 11, 0.5)),
    ):
        one = row(score=Score.failed("f1", "x", calls=calls))
        assert tuple(cell(name, one) for name in ("requests", "cached", "tokens", "cost_usd")) == spent


def test_models_are_those_that_were_reported_with_answers_each_once():
    for reported, models in (
        ([], None),
        ([(None, None)], None),
        ([("m-1", None), (None, None), ("m-2", None), ("m-1", None)], "m-1; m-2"),
        ([("m-1", "ReplyError"), ("m-2", None)], "m-2"),
    ):
        calls = [JudgeCall(judge="j", prompt="p", model=model, error=error) for model, error in reported]
        named = [call.model_copy(update={"system_fingerprint": call.model}) for call in calls]
        one = row(score=Score.scored("f1", 1, calls=named))
        assert (cell("judge_models", one), cell("system_fingerprints", one)) == (models, models)


ROWS = [
    row(0, Score.scored("f1", 0.25, label="bad", calls=[PAID]), reward=1, right=True),
    row(1, Score.skipped("f1", "no reference"), reward=0.5),
    row(2, Score.failed("f1", "slow", error="OverloadError", calls=[UNKNOWN])),
]


def test_pandas_has_a_line_a_row_with_types_and_missing_values():
    pandas = pytest.importorskip("pandas", reason="needs the extra pandas")
    frame = to_pandas(ROWS)
    assert {name: str(kind) for name, kind in frame.dtypes.items() if kind != "string"} == {
        **dict.fromkeys(("index", "tokens"), "Int64"),
        **dict.fromkeys(("value", "confidence", "requests", "cached", "cost_usd", "labels.reward"), "float64"),
        "labels.right": "boolean",
        "status": "category",
    }
    assert frame["value"].mean() == 0.25
    assert frame["value"].isna().tolist() == [False, True, True]
    assert frame["labels.right"].tolist() == [True, pandas.NA, pandas.NA]
    assert frame["tokens"].tolist() == [11, 0, pandas.NA]
    assert frame.groupby("status", observed=False).size().to_dict() == {
        "scored": 1, "skipped": 1, "failed": 1, "abstained": 0,
    }  # fmt: skip
    assert frame["error"].dropna().tolist() == ["OverloadError"]


def test_no_rows_are_a_table_with_the_same_columns():
    pytest.importorskip("pandas", reason="needs the extra pandas")
    frame = to_pandas([])
    assert frame.shape == (0, 19)
    assert list(frame.columns) == [column.name for column in row_columns([])]


def test_a_library_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ConfigError, match="pip install 'pandas"):
        to_pandas([])
