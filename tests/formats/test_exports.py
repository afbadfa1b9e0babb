"""Exports of tracing and evaluation systems: read completely, refused, or read with a notice."""

import json
from collections import Counter

import pytest

from judgekit.errors import TraceError
from judgekit.formats.detect import detect
from judgekit.formats.exports import (
    MORE_PAGES,
    Page,
    has_trace_id,
    read_page,
    reject_column_frame,
    reject_spread_traces,
)
from judgekit.formats.reading import read

ROW = {"input": "q", "response": "a"}


def test_a_page_is_its_records_and_says_whether_there_are_more(tmp_path):
    cases = [
        ({"data": [ROW], "next_cursor": None}, False),
        ({"data": [ROW], "next_cursor": "c"}, True),
        ({"events": [ROW], "cursor": "c"}, True),
        ({"object": "list", "data": [ROW], "first_id": "a", "last_id": "b", "has_more": False}, False),
        ({"object": "list", "data": [ROW], "has_more": True}, True),
        ({"data": [ROW], "meta": {"cursor": None}}, False),
        ({"data": [ROW], "meta": {"cursor": "c"}}, True),
        ({"data": [ROW], "meta": {"page": 1, "limit": 50, "totalItems": 51, "totalPages": 2}}, True),
        ({"data": [ROW], "meta": {"page": 2, "limit": 50, "totalItems": 51, "totalPages": 2}}, False),
    ]
    for page, more in cases:
        assert read_page(page) == Page([ROW], more)
        path = tmp_path / "page.json"
        path.write_text(json.dumps(page))
        told: list[TraceError] = []
        [sample] = read(path, on_error=told.append)
        assert (sample.trace.response, sample.trace.source.format) == ("a", "rows")
        assert [error.problem for error in told] == [MORE_PAGES] * more


def test_what_is_no_page_stays_as_it_is():
    cases = [
        {"data": [ROW]},
        {"data": {"rows": [ROW]}, "next_cursor": None},
        {"data": [ROW], "events": [ROW], "cursor": None},
        {"data": [ROW], "cursor": None, "messages": []},
        {"events": [ROW], "app_name": "a", "user_id": "u"},
        [ROW],
        "page",
        None,
    ]
    for value in cases:
        assert read_page(value) is None


@pytest.mark.parametrize(
    "record",
    [
        {"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]},
        {"request": {"contents": [{"role": "user", "parts": [{"text": "q"}]}]}, "response": {"error": {"code": 400}}},
        {"messages": [{"type": "human", "content": "q"}]},
        {"conversations": [{"from": "human", "value": "q"}]},
    ],
)
def test_pages_are_read_in_any_format_also_one_a_line(tmp_path, record):
    lines = tmp_path / "pages.jsonl"
    lines.write_text("\n".join(json.dumps({"data": [record, record], "next_cursor": one}) for one in ("c", None)))
    samples = list(read(lines, on_error="raise"))
    assert [sample.id for sample in samples] == ["0", "1", "2", "3"]
    assert {sample.trace.messages[0].text for sample in samples} == {"q"}
    assert {sample.trace.source.format for sample in samples} == {detect(record).name}


def test_a_page_of_references_is_joined(tmp_path):
    (tmp_path / "r.json").write_text(json.dumps({"data": [{"input": "q", "reference": "r"}], "has_more": False}))
    (tmp_path / "a.jsonl").write_text(json.dumps(ROW))
    [sample] = read(tmp_path / "a.jsonl", references=tmp_path / "r.json", on_error="raise")
    assert sample.reference == "r"


PARTS = [
    [{**ROW, "traceId": "t"}, {**ROW, "traceId": "t"}],
    [{**ROW, "trace_id": 7}, {**ROW, "trace_id": 8}, {**ROW, "trace_id": 7}],
    [{**ROW, "id": "a", "trace_id": "t"}, {**ROW, "id": "b", "trace_id": "t", "parent_run_id": "a"}],
    [{**ROW, "id": "a"}, {**ROW, "id": "b", "parent_run_id": "a"}],
    [{**ROW, "id": "a", "root_span_id": "a"}, {**ROW, "id": "b", "root_span_id": "a", "span_parents": ["a"]}],
    [{"messages": [{"role": "user", "content": "q"}], "trace_id": "t"}] * 2,
]


def test_a_file_with_traces_in_several_records_is_refused(tmp_path):
    for rows in PARTS:
        for name in ["a.jsonl", "a.json"]:
            path = tmp_path / name
            path.write_text(json.dumps(rows) if name == "a.json" else "\n".join(map(json.dumps, rows)))
            names = ("traceId", "trace_id", "root_span_id", "parent_run_id")
            named = next(name for name in names if name in rows[0] or name in rows[1])
            with pytest.raises(TraceError) as raised:
                list(read(path))
            found = "2 records are parts of 1 trace and would count as separate samples; export whole traces"
            hint = f"; if each record is a conversation, use the trace as its group: --column {named}=group"
            assert raised.value.problem == f"{found}, or only the root runs{hint}"
            if not {"parent_run_id", "span_parents"} & rows[1].keys():
                samples = list(read(path, columns={named: "group"}, on_error="raise"))
                assert [sample.group for sample in samples] == [str(row[named]) for row in rows]


def test_a_trace_whose_second_record_stands_far_below_is_refused_before_anything_is_read(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(json.dumps({**ROW, "trace_id": number % 500}) for number in range(501)))
    with pytest.raises(TraceError, match="2 records are parts of 1 trace"):
        next(read(path))


def test_records_with_a_trace_each_are_samples(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(json.dumps({**ROW, "trace_id": one, "parent_run_id": None}) for one in "abc"))
    assert len(list(read(path, on_error="raise"))) == 3
    odd = [{"trace_id": ""}, {"trace_id": ""}, {"parent_id": True}, {"parent_id": True}, TraceError("broken"), "text"]
    assert reject_spread_traces([ROW, ROW, {"id": "a"}, {"id": "a"}, *odd]) is None
    assert not any(map(has_trace_id, [ROW, {"trace_id": None}, TraceError("broken"), "text", None]))


@pytest.mark.parametrize("name", ["a.jsonl", "a.json"])
def test_equal_ids_are_samples(tmp_path, name):
    path = tmp_path / name
    rows = [json.dumps({**ROW, "id": "a"})] * 2
    path.write_text("\n".join(rows) if name == "a.jsonl" else f"[{', '.join(rows)}]")
    assert len(list(read(path, on_error="raise"))) == 2


@pytest.mark.parametrize("record", [{**ROW, "session_id": "s"}, {**ROW, "metadata": {"thread_id": "s"}}])
@pytest.mark.parametrize("name", ["a.jsonl", "a.json"])
def test_records_that_share_a_session_are_read_with_a_notice(tmp_path, record, name):
    path = tmp_path / name
    path.write_text("\n".join([json.dumps(record)] * 3) if name == "a.jsonl" else json.dumps([record] * 3))
    told: list[TraceError] = []
    assert len(list(read(path, on_error=told.append))) == 3
    assert [error.problem.partition(";")[0] for error in told] == [
        "3 records share a session and count as independent samples"
    ]
    path.write_text(json.dumps([{**record, "group": "g"}] * 3) if name == "a.json" else json.dumps({**record}))
    assert list(read(path, on_error="raise"))


def test_a_log_of_every_call_of_a_conversation_is_read_with_a_notice(tmp_path):
    path = tmp_path / "a.jsonl"
    said = [{"role": ("user", "assistant")[at % 2], "content": f"m{at}"} for at in range(6)]
    other = [{"role": "user", "content": "m0"}, {"role": "assistant", "content": "another answer"}]
    rows = [said[:2], other, said[:4], said, said[:2], [{"role": "user", "content": "m0"}]]
    path.write_text("\n".join(json.dumps({"messages": row}) for row in rows))
    told: list[TraceError] = []
    assert len(list(read(path, on_error=told.append))) == 6
    [error] = told
    assert error.problem.startswith(
        "2 conversations repeat an earlier one and continue it, and each counts as a sample; "
    )


@pytest.mark.parametrize("name", ["a.jsonl", "a.json"])
@pytest.mark.parametrize("field", ["conversation_id", "trace_id"])
def test_messages_of_several_conversations_in_one_list_are_refused(tmp_path, name, field):
    path = tmp_path / name
    table = [{field: at // 2, "role": ("user", "assistant")[at % 2], "content": f"m{at}"} for at in range(4)]
    path.write_text(json.dumps(table) + "\n")
    with pytest.raises(
        TraceError, match=rf"contains messages of 2 conversations \(by '{field}'\) in one list; .*group_by"
    ):
        list(read(path, on_error="raise"))
    path.write_text(json.dumps([{**one, field: 1} for one in table]) + "\n")
    assert len(list(read(path, on_error="raise"))) == 1


@pytest.mark.parametrize(
    ("name", "found"), [("a.jsonl", "contains no conversations"), ("a.json", "unknown format: found an empty list")]
)
def test_an_empty_page_is_refused(tmp_path, name, found):
    path = tmp_path / name
    path.write_text(json.dumps({"data": [], "next_cursor": None}))
    with pytest.raises(TraceError, match=found):
        list(read(path))


def test_pages_of_lines_say_that_the_next_one_is_missing(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(json.dumps({"data": [ROW], "next_cursor": one}) for one in ("b", "c")))
    told: list[TraceError] = []
    assert len(list(read(path, on_error=told.append))) == 2
    assert [(error.problem, error.line) for error in told] == [(MORE_PAGES, 2)]


def test_a_data_frame_by_columns_is_refused_with_how_to_write_it(tmp_path):
    path = tmp_path / "frame.json"
    path.write_text(json.dumps({"input": {"0": "q", "1": "r"}, "response": {"0": "a", "1": "b"}}))
    with pytest.raises(
        TraceError, match=r'is a data frame written by column; write df\.to_json\(path, orient="records"'
    ):
        list(read(path))
    path = tmp_path / "frame.jsonl"
    path.write_text(json.dumps({"input": {"5": "q", "7": "r"}, "response": {"5": "a", "7": "b"}}))
    with pytest.raises(TraceError, match="is a data frame written by column"):
        list(read(path, "rows", on_error="raise"))
    reject_column_frame({"input": {"0": "q"}, "response": "a"})
    reject_column_frame({"input": {"question": "q"}, "response": {"question": "q"}})


COUNTED = {
    "braintrust_exp.jsonl": "braintrust samples 2 messages 4 calls 0 references 2 labels 2 warnings 1",
    "braintrust_export.csv": "braintrust samples 1 messages 2 calls 0 references 1 labels 1 warnings 0",
    "braintrust_spans.jsonl": "braintrust samples 1 messages 5 calls 1 references 0 labels 1 warnings 0",
    "deepeval_convo.json": "deepeval samples 1 messages 4 calls 1 references 1 labels 0",
    "deepeval_convo.jsonl": "deepeval samples 1 messages 4 calls 1 references 1 labels 0",
    "deepeval_goldens.json": "deepeval samples 1 messages 4 calls 1 references 1 expected 1 documents 1 labels 0",
    "deepeval_goldens.jsonl": "deepeval samples 1 messages 4 calls 1 references 1 expected 1 documents 1 labels 0",
    "deepeval_run.json": "deepeval samples 1 messages 2 calls 0 references 1 judge 2",
    "hf_alpaca.jsonl": "huggingface samples 1 messages 2 labels 0 warnings 0",
    "hf_arena.jsonl": "huggingface samples 1 messages 2 human 1 warnings 0",
    "hf_conversation.jsonl": "huggingface samples 1 messages 2 labels 0 warnings 0",
    "hf_messages.jsonl": "openai-chat samples 1 messages 2 labels 0 warnings 0",
    "hf_pref.jsonl": "huggingface samples 1 messages 2 unknown 1 warnings 0",
    "hf_prompt_completion.jsonl": "huggingface samples 1 messages 2 labels 0 warnings 0",
    "hf_prompt_completion_text.jsonl": "huggingface samples 1 messages 2 labels 0 warnings 0",
    "langfuse_dataset_items.jsonl": "langfuse samples 1 messages 1 calls 0 references 1 labels 0 warnings 1",
    "langfuse_obs_blob.jsonl": "langfuse samples 1 messages 5 calls 1 references 0 labels 0 groups 1 warnings 0",
    "langfuse_obs_v2.json": "langfuse samples 1 messages 5 calls 1 references 0 labels 0 groups 1 warnings 0",
    "langfuse_trace_api.json": "langfuse samples 1 messages 5 calls 1 references 0 labels 1 groups 1 warnings 0",
    "langfuse_traces_export.json": "langfuse samples 1 messages 2 calls 0 references 0 labels 1 groups 0 warnings 0",
    "langsmith_examples.jsonl": "langsmith samples 1 messages 1 calls 0 references 1 labels 0 warnings 1",
    "langsmith_examples_chat.jsonl": "langsmith samples 1 messages 2 calls 0 references 1 labels 0 warnings 3",
    "langsmith_run_openai_wrapper.jsonl": "langsmith samples 1 messages 3 calls 0 references 0 labels 0 warnings 0",
    "langsmith_runs_all.jsonl": "langsmith samples 1 messages 5 calls 1 references 0 labels 0 warnings 1",
    "langsmith_runs_root.jsonl": "langsmith samples 1 messages 5 calls 1 references 0 labels 0 warnings 1",
    "oai_item_sample.jsonl": "openai-evals samples 1 messages 1 calls 0 references 0 labels 0",
    "oai_items.jsonl": "openai-evals samples 2 messages 0 references 0 labels 0",
    "oai_output_items.jsonl": "openai-evals samples 2 messages 6 calls 0 references 0 labels 4",
    "oai_output_items_page.json": "openai-evals samples 2 messages 6 calls 0 references 0 labels 4",
    "oaievals_oss_samples.jsonl": "openai-evals samples 2 messages 3 calls 0 references 3 labels 0",
    "phoenix_dataset_examples.json": "phoenix samples 1 messages 1 calls 0 references 1 labels 0 groups 0",
    "phoenix_df.jsonl": "openinference samples 1 messages 2 calls 0 references 0 labels 0 groups 0",
    "phoenix_experiment.json": "phoenix samples 1 messages 2 calls 0 references 1 labels 1 groups 1",
    "phoenix_spans.jsonl": "openinference samples 1 messages 2 calls 0 references 0 labels 0 groups 0",
    "promptfoo_cli_out.json": "promptfoo samples 2 messages 4 calls 0 references 1 benchmark 7",
    "promptfoo_cli_out.jsonl": "promptfoo samples 2 messages 4 calls 0 references 1 benchmark 7",
    "promptfoo_results.json": "promptfoo samples 2 messages 4 calls 0 references 0 judge 8",
    "promptfoo_results.jsonl": "promptfoo samples 2 messages 4 calls 0 references 0 judge 8",
    "weave_calls.jsonl": "weave samples 1 messages 3 calls 0 references 0 labels 0",
}
"""The format of each file, and what it holds, counted by hand; labels also by source."""
REFUSED = {
    "hf_qa.jsonl": "if the column has another name: --column question=input",
    "langfuse_scores.jsonl": "contains scores of Langfuse and no conversations",
    "langsmith_dataset.csv": "if the column has another name: --column question=input",
    "langsmith_feedback.jsonl": "contains scores of LangSmith and no conversations",
    "oai_eval.json": "score its output items, with scorers in place of its graders",
    "oaievals_oss_record.jsonl": "unknown format: found an object with the keys 'spec'",
    "promptfoo_cli_out.csv": "write promptfoo eval -o results.json",
}
"""Files without samples, or whose columns could mean two things, and what helps."""


@pytest.fixture
def exports(shared_data):
    return {path.name: path for path in sorted((shared_data / "exports").iterdir()) if path.suffix != ".md"}


def test_every_export_is_read_whole_or_refused_with_what_helps(exports):
    assert exports.keys() == COUNTED.keys() | REFUSED.keys()
    for name, path in exports.items():
        told: list[TraceError] = []
        try:
            samples = list(read(path, on_error=told.append))
        except TraceError as error:
            samples, told = [], [error]
        if name in REFUSED:
            assert samples == [], name
            assert told, name
            assert all(REFUSED[name] in str(error) for error in told), (name, told)
            continue
        form, *counts = COUNTED[name].split()
        counted = Counter(label.source for sample in samples for label in sample.trace.labels)
        for sample in samples:
            counted.update(
                samples=1,
                messages=len(sample.trace.messages),
                calls=len(sample.trace.tool_calls()),
                references=len(sample.all_references),
                expected=len(sample.reference_tool_calls or ()),
                documents=len(sample.documents or ()),
                labels=len(sample.trace.labels),
                groups=sample.group is not None,
                warnings=len(sample.trace.warnings),
            )
        expected = {kind: int(number) for kind, number in zip(counts[::2], counts[1::2], strict=True)}
        assert {kind: counted[kind] for kind in expected} == expected, name
        assert (told, {sample.trace.source.format for sample in samples}) == ([], {form}), name


def test_nothing_of_an_export_that_is_read_is_forgotten(exports, forgotten):
    for name, path in exports.items():
        if name in REFUSED or path.suffix == ".csv":
            continue
        text = path.read_text(encoding="utf-8")
        document = json.loads(text) if name.endswith(".json") else list(map(json.loads, text.splitlines()))
        page = read_page(document)
        document = document if page is None else page.records
        assert forgotten(detect(document), document) == [], name
