"""Columns under the names that they have in the file."""

import json
import re

import pytest

from judgekit.errors import ConfigError, TraceError
from judgekit.traces.reading import read

NAMES = {"question": "input", "answer": "response"}
ROWS = [{"question": "q", "answer": "a", "more": "m"}, {"question": "r", "answer": "b", "more": "n"}]
CONTAINERS = {
    "a.jsonl": "\n".join(map(json.dumps, ROWS)),
    "lines.json": "\n".join(map(json.dumps, ROWS)),
    "a.json": json.dumps(ROWS),
    "a.csv": "question,answer,more\nq,a,m\nr,b,n\n",
    "a.tsv": "question\t answer\tmore\nq\ta\tm\nr\tb\tn\n",
}


@pytest.fixture(params=CONTAINERS)
def path(request, tmp_path):
    path = tmp_path / request.param
    path.write_text(CONTAINERS[request.param])
    return path


def test_columns_are_renamed_in_every_container(path):
    for format_name in (None, "rows"):
        samples = list(read(path, format_name, columns=NAMES, on_error="raise"))
        found = [([message.text for message in sample.trace.messages], sample.fields) for sample in samples]
        assert found == [(["q", "a"], {"more": "m"}), (["r", "b"], {"more": "n"})]


def test_the_names_of_other_formats_can_be_given_too(path):
    samples = list(read(path, columns={"question": "user_input", "answer": "response"}))
    assert [sample.trace.source.format for sample in samples] == ["ragas", "ragas"]
    assert [sample.trace.response for sample in samples] == ["a", "b"]


@pytest.mark.parametrize("format_name", [None, "rows"])
def test_a_column_that_is_not_there_is_an_error_that_names_those_that_are(path, format_name):
    found = "no column is called 'qestion', did you mean 'question'? Known: question, answer, more"
    with pytest.raises(TraceError, match=f"^{re.escape(f'{path}: {found}')}$"):
        list(read(path, format_name, columns={"qestion": "input"}))


def test_two_columns_cannot_have_one_name(path):
    with pytest.raises(ConfigError, match=r"^columns: 'question' and 'answer' are both to be called 'input'$"):
        read(path, columns={"question": "input", "answer": "input"})


def test_a_column_cannot_take_the_name_of_another(tmp_path):
    found = "the column 'question' is to be called 'input', and there is a column 'input' already"
    path = tmp_path / "a.jsonl"
    path.write_text('{"question": "q"}\n{"question": "q", "input": "i"}\n{"input": "i"}')
    met: list[TraceError] = []
    samples = list(read(path, columns={"question": "input"}, on_error=met.append))
    assert [sample.trace.messages[0].text for sample in samples] == ["q", "i"]
    assert [str(error) for error in met] == [f"{path}, record 1 (line 2): {found}"]
    table = tmp_path / "a.csv"
    table.write_text("question,input\nq,i\n")
    with pytest.raises(TraceError, match=f"^{re.escape(f'{table} (line 1): {found}')}$"):
        list(read(table, columns={"question": "input"}))


def test_two_columns_can_change_their_names(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("input,output\na,q\n")
    [sample] = read(path, columns={"input": "output", "output": "input"})
    assert [message.text for message in sample.trace.messages] == ["q", "a"]


def test_a_column_that_some_rows_lack_is_renamed_in_the_others(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"input": "p"}\nbroken\n{"input": "q", "answer": "a"}')
    met: list[TraceError] = []
    samples = list(read(path, columns={"answer": "output"}, on_error=met.append))
    assert [sample.trace.response for sample in samples] == [None, "a"]
    assert [error.line for error in met] == [2]


def test_a_column_may_stand_in_the_file_of_references_alone(tmp_path, path):
    references = tmp_path / "r.csv"
    references.write_text("question;gold\nq;x\nr;y\n")
    samples = read(path, references=references, columns={**NAMES, "gold": "expected_output"}, on_error="raise")
    assert [(sample.reference, sample.fields["expected_output"]) for sample in samples] == [("x", "x"), ("y", "y")]
