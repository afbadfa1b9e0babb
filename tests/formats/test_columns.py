"""Columns with other names in the file."""

import json
import re

import pytest

from judgekit.errors import ConfigError, TraceError
from judgekit.formats.reading import read

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
    found = "no column is called 'qestion'. Did you mean 'question'? Known: question, answer, more"
    with pytest.raises(TraceError, match=f"^{re.escape(f'{path}: {found}')}$"):
        list(read(path, format_name, columns={"qestion": "input"}))


def test_two_columns_cannot_have_one_name(path):
    with pytest.raises(ConfigError, match=r"^columns: 'question' and 'answer' are both renamed to 'input'$"):
        read(path, columns={"question": "input", "answer": "input"})


def test_in_a_document_a_row_where_a_name_is_taken_is_told_alone(tmp_path):
    path = tmp_path / "a.json"
    path.write_text(json.dumps([{"question": "q", "output": "a"}, {"question": "q", "input": "i"}, {"input": "i"}]))
    met: list[TraceError] = []
    samples = list(read(path, columns={"question": "input"}, on_error=met.append))
    assert [(sample.id, sample.trace.messages[0].text) for sample in samples] == [("0", "q"), ("2", "i")]
    found = "cannot rename the column 'question' to 'input': there already is a column 'input'"
    assert [str(error) for error in met] == [f"{path}, record 1: {found}"]
    path.write_text('{"question": "q", "input": "i"}')
    for format_name in (None, "rows"):
        with pytest.raises(TraceError, match=f"^{re.escape(f'{path}: {found}')}$"):
            read(path, format_name, columns={"question": "input"})


def test_a_column_cannot_take_the_name_of_another(tmp_path):
    found = "cannot rename the column 'question' to 'input': there already is a column 'input'"
    path = tmp_path / "a.jsonl"
    path.write_text('{"question": "q", "output": "a"}\n{"question": "q", "input": "i"}\n{"input": "i"}')
    met: list[TraceError] = []
    samples = list(read(path, columns={"question": "input"}, on_error=met.append))
    assert [sample.trace.messages[0].text for sample in samples] == ["q", "i"]
    assert [str(error) for error in met] == [f"{path} (line 2): {found}"]
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
    path.write_text('{"input": "p", "label": "x"}\nbroken\n{"input": "q", "answer": "a"}')
    met: list[TraceError] = []
    samples = list(read(path, columns={"answer": "output"}, on_error=met.append))
    assert [sample.trace.response for sample in samples] == [None, "a"]
    assert [error.line for error in met] == [2]


def test_a_column_may_stand_in_the_file_of_references_alone(tmp_path, path):
    references = tmp_path / "r.csv"
    references.write_text("question;gold\nq;x\nr;y\n")
    samples = read(path, references=references, columns={**NAMES, "gold": "expected_output"}, on_error="raise")
    assert [(sample.reference, sample.fields["expected_output"]) for sample in samples] == [("x", "x"), ("y", "y")]


@pytest.mark.parametrize(
    ("document", "columns", "texts"),
    [
        ({"question": "q", "answer": "a"}, {"question": "input", "answer": "output"}, ["q", "a"]),
        ({"turns": [{"role": "user", "content": "q"}]}, {"turns": "messages"}, ["q"]),
        ([{"role": "user", "text": "q"}, {"role": "assistant", "text": "a"}], {"text": "content"}, ["q", "a"]),
    ],
    ids=["a row", "a conversation", "a list of messages"],
)
def test_the_keys_of_one_document_are_renamed(tmp_path, document, columns, texts):
    path = tmp_path / "a.json"
    path.write_text(json.dumps(document))
    format_name = next(read(path, columns=columns)).trace.source.format
    for given in (None, format_name):
        [sample] = read(path, given, columns=columns, on_error="raise")
        assert [message.text for message in sample.trace.messages] == texts
    with pytest.raises(TraceError, match=r"^.*a.json: no column is called 'qestion'"):
        read(path, columns={"qestion": "input"})


@pytest.mark.parametrize("format_name", [None, "openai-chat"])
def test_a_bare_list_of_messages_stays_one_conversation_where_columns_are_those_of_the_references(
    tmp_path, format_name
):
    path, references = tmp_path / "a.json", tmp_path / "r.csv"
    path.write_text('[{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]')
    references.write_text("question,gold\nq,g\n")
    names = {"question": "input", "gold": "expected_output"}
    [sample] = read(path, format_name, references, columns=names, on_error="raise")
    assert ([message.text for message in sample.trace.messages], sample.reference) == (["q", "a"], "g")


@pytest.mark.parametrize("format_name", [None, "tau2"])
def test_a_file_of_simulations_is_read_with_the_columns_of_its_references(tmp_path, format_name):
    path, references = tmp_path / "a.json", tmp_path / "r.csv"
    said = [{"role": "user", "content": "Hi"}]
    simulations = [{"task_id": task, "trial": trial, "messages": said} for task in ("13", "14") for trial in (0, 1)]
    path.write_text(json.dumps({"simulations": simulations, "tasks": []}))
    references.write_text("task;gold\n13;x\n14;y\n")
    names = {"task": "task_id", "gold": "reference"}
    samples = list(read(path, format_name, references, columns=names, on_error="raise"))
    assert [(sample.id, sample.reference) for sample in samples] == [
        ("13#0", "x"),
        ("13#1", "x"),
        ("14#0", "y"),
        ("14#1", "y"),
    ]


@pytest.mark.parametrize("names", [("a.csv", "b.csv"), ("b.csv", "a.csv")])
def test_a_column_may_stand_in_any_of_many_files_whatever_their_order(tmp_path, names):
    for name, content in zip(names, ("asked,response\nq,a\n", "input,response\nq,a\n"), strict=True):
        (tmp_path / name).write_text(content)
    samples = list(read(tmp_path, columns={"asked": "input"}, on_error="raise"))
    assert [[message.text for message in sample.trace.messages] for sample in samples] == [["q", "a"]] * 2
    met: list[TraceError] = []
    assert len(list(read(tmp_path, columns={"askd": "input"}, on_error=met.append))) == 2
    assert [str(error) for error in met] == [
        f"{tmp_path}: no column is called 'askd'. Did you mean 'asked'? Known: "
        + ("asked, response, input" if names[0] == "a.csv" else "input, response, asked")
    ]
