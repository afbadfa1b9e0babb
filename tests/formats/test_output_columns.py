"""The places of outputs in tables of promptfoo."""

import pytest

from judgekit.formats.tables import OutputColumns

BLOCK = ("[p] x", "Status", "Score", "Named Scores", "Grader Reason", "Comment")


def test_outputs_are_found_and_nested():
    found = OutputColumns.find(["q", *BLOCK, *BLOCK[:4], "Metric: m", *BLOCK[4:], "after"])
    assert found is not None
    assert (found.variables, found.blocks) == (["q"], [range(1, 7), range(7, 14)])
    cells = ["a", "b", "PASS", "1", "", "ok", "", "", "ERROR", "0", "", "0.5", "", "", "z"]
    assert found.record(["renamed"], cells, 3) == {
        "testIdx": 3,
        "vars": {"renamed": "a"},
        "outputs": [
            {"header": "[p] x", "output": "b", "Status": "PASS", "Score": "1", "Grader Reason": "ok"},
            {"header": "[p] x", "output": "", "Status": "ERROR", "Score": "0", "Metric: m": "0.5"},
        ],
        "columns": {"after": "z"},
    }


def test_a_table_that_is_cut_off_ends_with_its_last_column():
    found = OutputColumns.find(BLOCK[:4])
    assert found is not None
    assert found.record([], ["b", "PASS", "1", ""], 0)["outputs"] == [
        {"header": "[p] x", "output": "b", "Status": "PASS", "Score": "1"}
    ]


@pytest.mark.parametrize(
    "header", [[], ["input", "response"], ["Status", "Score", "Named Scores"], ["x", "Status", "Score"]]
)
def test_other_tables_have_no_outputs(header):
    assert OutputColumns.find(header) is None
