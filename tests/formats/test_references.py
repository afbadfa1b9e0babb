"""References in a separate file."""

import json
import re
from pathlib import Path

import pytest

from judgekit.errors import TraceError
from judgekit.formats.reading import read
from judgekit.traces.sample import ExpectedCall, Ranking, References, Sample

HI = [{"role": "user", "content": "Hi"}]


@pytest.fixture
def join(tmp_path):
    """Read rows with references beside them. Returns the samples and the reported messages without the path."""

    def write(name: str, rows: list) -> Path:
        path = tmp_path / name
        path.write_text("\n".join(map(json.dumps, rows)))
        return path

    def read_both(rows: list, references: list, *, strictly: bool = False) -> tuple[list[Sample], list[str]]:
        met: list[TraceError] = []
        known = write("r.jsonl", references)
        samples = list(read(write("a.jsonl", rows), references=known, on_error="raise" if strictly else met.append))
        assert {error.path for error in met} <= {known}
        return samples, [error.problem for error in met]

    return read_both


def row(identity: str | None = None, **beside: object) -> dict:
    return {"messages": HI, "id": identity, **beside}


def test_references_are_joined_by_id(join):
    known = {
        "reference": "r",
        "references": ["a"],
        "reference_topics": ["t"],
        "reference_tool_calls": [{"name": "f", "args": {"a": 1}, "compare_args": ["a"]}, {"name": "g"}],
        "label": "l",
        "prediction_score": 1,
        "ranking": {"retrieved": ["a"], "relevance": {"a": 1}},
        "metadata": {"m": 1},
    }
    [first, second], met = join([row("a"), row("b")], [{"id": "a", **known}])
    assert met == []
    assert second == Sample(id="b", trace=second.trace)
    assert first == Sample(
        id="a",
        trace=first.trace,
        reference="r",
        references=["a"],
        reference_topics=["t"],
        reference_tool_calls=[ExpectedCall("f", {"a": 1}, compare_args=["a"]), ExpectedCall("g")],
        label="l",
        prediction_score=1.0,
        ranking=Ranking(["a"], {"a": 1}),
        metadata={"m": 1},
    )


def test_without_ids_the_index_is_the_key(join):
    [sample, _], met = join([{"messages": HI}] * 2, [{"id": 0, "reference": "r"}])
    assert (sample.reference, met) == ("r", [])


@pytest.mark.parametrize(
    "rows",
    [
        [row("a", metadata={"task": 7}), row("b", metadata={"task": "7"}), row("c", metadata={})],
        [
            {"id": identity, "trace": {"messages": HI, "metadata": metadata}}
            for identity, metadata in [("a", {"task": 7}), ("b", {"task": "7"}), ("c", {"task": None})]
        ],
    ],
    ids=["of the sample", "of the trace"],
)
def test_references_are_joined_by_a_metadata_key_to_many_samples(join, rows):
    samples, met = join(rows, [{"task": 7, "reference": "r"}])
    assert [sample.reference for sample in samples] == ["r", "r", None]
    assert met == []


def test_references_by_the_id_of_a_task_reach_its_trials(join):
    rows = [
        row("a#1", group="a"),
        row("a#2", group="airline a"),
        row("b#1"),
        row("c#x", group="c"),
        row("d", group="d"),
    ]
    known = [
        {"id": "a", "reference": "r"},
        {"id": "a#2", "reference": "own"},
        {"id": "b", "reference": "r"},
        {"id": "c"},
    ]
    samples, met = join(rows, known)
    assert [sample.reference for sample in samples] == ["r", "own", None, None, None]
    assert met == ["2 references match no sample by 'id': 'b'; 'c'; samples have ids such as 'b#1', 'c#x', 'd'"]


def test_references_by_the_id_of_a_task_reach_no_trial_of_another_task_or_version(join):
    groups = {"1": "cohort 2017", "2": "airline 2 (another version)", "3": "airline 13", "4": "4 5f0c", "b": "a b"}
    rows = [row(f"{task}#0", group=group) for task, group in groups.items()]
    samples, _ = join(rows, [{"id": task, "reference": "r"} for task in groups])
    assert [sample.reference for sample in samples] == [None, None, None, None, "r"]


def test_references_that_reach_tasks_of_different_groups_are_told(join):
    rows = [row("18#0", group="airline 18"), row("18#0", group="retail 18"), row("18#1", group="retail 18")]
    samples, met = join(rows, [{"id": "18", "reference": "r"}])
    assert [sample.reference for sample in samples] == ["r", "r", "r"]
    assert met == ["1 reference matches samples of different groups by 'id': '18'"]


def test_references_by_a_metadata_key_may_reach_several_groups(join):
    rows = [row(identity, group=identity, metadata={"task_id": 7}) for identity in "ab"]
    samples, met = join(rows, [{"task_id": 7, "reference": "r"}])
    assert ([sample.reference for sample in samples], met) == (["r", "r"], [])


def test_warnings_of_rows_are_counted(join):
    _, met = join([row("a"), row("b")], [{"id": identity, "reference": {"text": "r"}} for identity in "ab"])
    assert met == ["reference: an object with one string, read as that string (2 times)"]


@pytest.mark.parametrize("key", [{"id": "a"}, {"input": "Hi"}, {"id": "a", "input": "Hi"}])
def test_beside_an_id_or_an_input_other_columns_are_fields_of_the_sample(join, key):
    references = [{"task": 1, **key, "reference": "r", "refrence": "x", "fields": {"f": 2}, "task_time": 3}]
    [sample], met = join([row("a", fields={"own": 0})], references)
    assert (sample.reference, sample.metadata, met) == ("r", {}, [])
    assert sample.fields == {"task": 1, "refrence": "x", "f": 2, "task_time": 3, "own": 0}


def test_one_key_is_the_same_as_a_whole_number_and_as_a_fraction(join):
    samples, met = join([row("1"), {**row(), "id": 2.0}], [{"id": 1.0, "label": 1.0}, {"id": 2, "label": 0.5}])
    assert [(sample.id, sample.label) for sample in samples] == [("1", "1"), ("2", "0.5")]
    assert met == []


def test_references_of_its_own_are_kept_and_counted(join):
    own = row("a", reference="own", reference_tool_calls=[], metadata={"own": 1})
    known = {"reference": "r", "reference_tool_calls": [{"name": "f"}], "metadata": {"m": 1}, "label": "l"}
    samples, met = join([own, row("b")], [{"id": identity, **known} for identity in "ab"])
    assert [(one.reference, len(one.reference_tool_calls), one.metadata, one.label) for one in samples] == [
        ("own", 0, {"own": 1}, "l"),
        ("r", 1, {"m": 1}, "l"),
    ]
    assert met == ["1 sample already had references, which were kept"]


def test_keys_that_stand_twice_are_not_used_and_reported_with_their_lines(join):
    references = [{"id": identity, "reference": "r"} for identity in ["a", "b", "a", "c", "a", "b"]]
    samples, met = join([row("a"), row("b"), row("c")], references)
    assert [sample.reference for sample in samples] == [None, None, "r"]
    assert met == ["duplicate keys, whose rows are not used: 'a' (line 1, line 3, line 5); 'b' (line 2, line 6)"]


def test_keys_that_stand_twice_are_reported_before_the_first_sample(tmp_path):
    path, references = tmp_path / "a.jsonl", tmp_path / "r.jsonl"
    path.write_text(json.dumps(row("a")))
    references.write_text('{"id": "a", "label": "l"}\n{"id": "a", "label": "m"}')
    met: list[TraceError] = []
    assert next(read(path, references=references, on_error=met.append)).label is None
    assert [error.problem for error in met] == ["duplicate keys, whose rows are not used: 'a' (line 1, line 2)"]
    with pytest.raises(TraceError, match=r"^.*r.jsonl: duplicate keys"):
        next(read(path, references=references, on_error="raise"))


@pytest.mark.parametrize(
    ("rows", "references", "found"),
    [
        (
            [row(f"{number}#0") for number in range(13, 18)],
            [{"id": "13", "label": "l"}],
            "1 reference matches no sample by 'id': '13'; samples have ids such as '13#0', '14#0', '15#0'",
        ),
        (
            [row("a"), row("b")],
            [{"id": "a", "label": "l"}, {"id": "B", "label": "l"}],
            "1 reference matches no sample by 'id': 'B'; samples have ids such as 'b'",
        ),
        (
            [row("a"), row("b")],
            [{"input": "Ho", "label": "l"}],
            "1 reference matches no sample by 'input': 'Ho'; samples have inputs such as 'Hi'",
        ),
        (
            [row("a", metadata={"task": 7})],
            [{"task": "x", "label": "l"}],
            "1 reference matches no sample by 'task': 'x'; samples have 'task' such as '7'",
        ),
        (
            [row("a", metadata={"task": 7})],
            [{"tsk": "7", "label": "l"}],
            "1 reference matches no sample by 'tsk': '7'; no sample has this key",
        ),
        (
            [row("a")],
            [{"id": "a", "label": "l"}, {"id": "b", "label": "l"}],
            "1 reference matches no sample by 'id': 'b'",
        ),
    ],
)
def test_of_references_that_meet_no_sample_is_said_what_samples_have(join, rows, references, found):
    assert join(rows, references)[1] == [found]


def test_what_did_not_fit_is_a_warning_or_an_error_once_all_is_read(tmp_path):
    path, references = tmp_path / "a.jsonl", tmp_path / "r.jsonl"
    path.write_text(json.dumps(row("a")))
    references.write_text('{"id": "x", "reference": "r"}')
    found = f"{references}: 1 reference matches no sample by 'id': 'x'; samples have ids such as 'a'"
    with pytest.warns(UserWarning, match=f"^{re.escape(found)}$"):
        assert [sample.id for sample in read(path, references=references)] == ["a"]
    samples = read(path, references=references, on_error="raise")
    assert next(samples).id == "a"
    with pytest.raises(TraceError, match=f"^{re.escape(found)}$"):
        next(samples)


def asked(text: str, *more: str, **beside: object) -> dict:
    said = [{"role": "system", "content": "s"}, *({"role": "user", "content": one} for one in (text, *more))]
    return {"messages": said, **beside}


def test_references_are_joined_by_what_the_user_asked_first(join):
    references = [{"input": "q", "expected_output": "e", "label": 1}, {"input": {"a": 1}, "reference": ["x", "y"]}]
    rows = [asked("q"), asked("r", "q"), asked('{"a": 1}'), asked("q", "then")]
    samples, met = join(rows, references)
    assert [(one.reference, one.references, one.label, one.fields) for one in samples] == [
        ("e", None, "1", {"expected_output": "e"}),
        (None, None, None, {}),
        (None, ("x", "y"), None, {}),
        ("e", None, "1", {"expected_output": "e"}),
    ]
    assert met == []


def test_with_an_id_the_input_is_no_key(join):
    samples, met = join([asked("q", id="a")], [{"id": "a", "input": "another", "expected_output": "e"}])
    assert [(one.reference, one.fields) for one in samples] == [("e", {"expected_output": "e"})]
    assert met == []


def test_fields_are_added_to_those_of_the_sample_and_its_own_stay(join):
    rows = [row("a", fields={"own": 1}), row("b", fields={"task_time": 5})]
    references = [{"id": identity, "task_time": 7, "expected_output": "e"} for identity in "ab"]
    samples, met = join(rows, references)
    assert [one.fields for one in samples] == [
        {"own": 1, "task_time": 7, "expected_output": "e"},
        {"task_time": 5, "expected_output": "e"},
    ]
    assert met == ["1 sample already had references, which were kept"]


def test_what_is_null_is_not_known(join):
    samples, met = join([row("a")], [{"id": "a", "input": None, "reference": None, "label": "l"}])
    assert [(one.reference, one.label) for one in samples] == [(None, "l")]
    assert met == []


FILES = {
    "r.jsonl": '{"id": "a", "expected_output": "e", "label": "l"}',
    "r.json": '[{"id": "a", "expected_output": "e", "label": "l"}]',
    "r.csv": "id,expected_output,label,reference\na,e,l,\n",
    "r.tsv": "id\texpected_output\tlabel\na\te\tl\n",
}


@pytest.mark.parametrize("name", FILES)
def test_references_may_stand_in_any_container(tmp_path, name):
    path, references = tmp_path / "a.jsonl", tmp_path / name
    path.write_text(json.dumps(row("a")))
    references.write_text(FILES[name])
    [sample] = read(path, references=references, on_error="raise")
    assert (sample.reference, sample.label, sample.fields) == ("e", "l", {"expected_output": "e"})


def test_a_row_that_cannot_be_used_is_an_error_that_says_where_it_stands(tmp_path):
    cases = [
        ("r.csv", "id,reference\na\n", " (line 2): has 1 cell, but the first row names 2 columns"),
        ("r.csv", "id,task_time\n\na,soon\n", " (line 3): task_time: expected a finite number, found 'soon'"),
        ("r.csv", "id,reference\n", ": contains no rows"),
        (
            "r.json",
            '[{"id": "a", "label": "l"}, {"id": "b", "label": []}]',
            ", record 1: label: Input should be a valid",
        ),
        ("r.json", '[{"id": "a", "label": "l"}, 5]', ", record 1: expected an object, found 5"),
        ("r.json", "[", ": not JSON: "),
        ("r.json", "[]", ": contains no rows"),
    ]
    for name, content, found in cases:
        path, references = tmp_path / "a.jsonl", tmp_path / name
        path.write_text(json.dumps(row("a")))
        references.write_text(content)
        with pytest.raises(TraceError, match=f"^{re.escape(str(references) + found)}"):
            list(read(path, references=references, on_error="raise"))


def test_rows_that_have_no_lines_are_named_by_their_index(tmp_path):
    path, references = tmp_path / "a.jsonl", tmp_path / "r.json"
    path.write_text(json.dumps(row("a")))
    references.write_text('[{"id": "a", "label": "l"}, {"id": "a", "label": "m"}]')
    met: list[TraceError] = []
    list(read(path, references=references, on_error=met.append))
    assert [error.problem.partition("used: ")[2] for error in met] == ["'a' (record 0, record 1)"]


FIELDS = ", ".join([*References.__annotations__, "expected_output"])


def test_a_row_that_does_not_fit_is_an_error_that_names_its_line(join):
    cases = [
        (
            [{"task": "a", "refrence": "r"}],
            1,
            f"expected the key 'task' and references, found the fields 'task', 'refrence'; reference fields are {FIELDS}",
        ),
        (
            [{"reference": "r"}],
            1,
            f"expected one key and references, found the fields 'reference'; reference fields are {FIELDS}",
        ),
        ([{}], 1, f"expected one key and references, found the fields ; reference fields are {FIELDS}"),
        (
            [{"id": "a", "reference": "r"}, {"reference": "r"}],
            2,
            f"expected the key 'id' and references, found the fields 'reference'; reference fields are {FIELDS}",
        ),
        (
            [{"id": "a", "reference": "r"}, {"task": "b", "reference": "r"}],
            2,
            f"expected the key 'id' and references, found the fields 'task', 'reference'; reference fields are {FIELDS}",
        ),
        ([{"id": "a", "label": {}}], 1, "label: Input should be a valid string, found {}"),
        ([{"id": "a", "fields": 5, "task_time": 1}], 1, "fields: expected an object, found 5"),
        ([{"id": "a", "references": "one"}], 1, "references: Input should be a list, found 'one'"),
        (
            [{"id": "a"}, {"id": "b", "ranking": {"retrieved": []}}],
            2,
            "ranking.relevance: Field required, found {'retrieved': []}",
        ),
        (
            [{"id": "a", "reference_tool_calls": [{"name": "f"}, {"name": "f", "args": "oops"}]}],
            1,
            "reference_tool_calls[1]: arguments of an expected call must be a JSON object, found 'oops'",
        ),
        (["text"], 1, "expected an object, found 'text'"),
    ]
    for references, line, found in cases:
        with pytest.raises(TraceError) as raised:
            join([row("a"), row("b")], references, strictly=True)
        assert raised.value.problem.startswith(found)
        assert str(raised.value) == f"{raised.value.path} (line {line}): {raised.value.problem}"


def test_a_row_that_does_not_fit_is_reported_and_the_others_count(join):
    bad = [{"id": "b", "label": []}, {"task": "c", "reference": "r"}, "text"]
    rows, references = [row("a"), row("b"), row("d")], [{"id": "a", "reference": "r"}, *bad, {"id": "d", "label": "l"}]
    samples, met = join(rows, references)
    assert [(sample.reference, sample.label) for sample in samples] == [("r", None), (None, None), (None, "l")]
    assert [problem.partition(":")[0] for problem in met] == [
        "label",
        "expected the key 'id' and references, found the fields 'task', 'reference'; reference fields are "
        + FIELDS.replace(": ", ""),
        "expected an object, found 'text'",
    ]
