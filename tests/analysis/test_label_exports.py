"""Scores of other systems as human labels."""

import json
import warnings
from contextlib import suppress
from itertools import product
from random import Random

import pytest

from judgekit import AIMessage, HumanMessage, PromptScorer, Sample, ScriptedJudge, ToolCallF1, audit, load_prompt, run
from judgekit.analysis.labels import HumanLabel, read_label_file, read_labels
from judgekit.errors import ConfigError, TraceError
from judgekit.formats.exports import MORE_PAGES
from judgekit.formats.reading import read

TIMES = dict.fromkeys(("timestamp", "createdAt", "updatedAt"), "2026-11-20T10:00:00.000Z")
OF_ANA = {"name": "tone", "dataType": "BOOLEAN", "source": "ANNOTATION", "authorUserId": "u1"}
V3 = {"id": "s1", "projectId": "p", **OF_ANA, "value": True, "environment": "default", **TIMES, "comment": "kind"}
V3 |= {"subject": {"kind": "trace", "id": "t1"}}
V2 = {"id": "s2", "traceId": "t2", "observationId": None, **OF_ANA, "value": 0, "stringValue": "False"}
BLOB = {"id": "s3", "trace_id": "t3", "name": "tone", "value": 0.5, "data_type": "NUMERIC", "source": "ANNOTATION"}
FEEDBACK = {
    "id": "f1",
    "run_id": "t1",
    "trace_id": "t1",
    "key": "tone",
    "score": 1,
    "value": None,
    "comment": "fine",
    "feedback_source": {"type": "app", "user_id": "u1", "user_name": "Ana"},
}
ANNOTATION = {
    "id": "a1",
    "name": "tone",
    "annotator_kind": "HUMAN",
    "trace_id": "t1",
    "result": {"label": "fitting", "score": None, "explanation": "fine"},
    "user_id": "u1",
    "source": "APP",
}
STEP = "of sessions, experiments or single steps, not of whole conversations"


@pytest.fixture
def written(tmp_path):
    """Gives a function that writes scores and says where they are."""

    def write(*scores, name="scores.jsonl"):
        path = tmp_path / name
        document = scores[0] if len(scores) == 1 and name.endswith(".json") else list(scores)
        path.write_text(json.dumps(document) if name.endswith(".json") else "\n".join(map(json.dumps, scores)))
        return path

    return write


@pytest.fixture
def scored():
    """A run of the scorers tone and tool_call_f1 on two samples, of which one has spans."""
    judge = ScriptedJudge(lambda _: {"reason": "", "evidence": [], "verdict": "fitting"})
    messages = [HumanMessage("Hi"), AIMessage("Hello")]
    spans = [
        {"context": {"trace_id": "0xt2", "span_id": "0xroot"}, "parent_id": None},
        {"context": {"trace_id": "0xt2", "span_id": "0xstep"}, "parent_id": "0xroot"},
    ]
    samples = [Sample.of(messages, id="t1"), Sample.of(messages, id="conversation")]
    trace = samples[1].trace.model_copy(update={"extra": {"spans": spans}})
    samples[1] = samples[1].model_copy(update={"trace": trace})
    return run(samples, [PromptScorer(load_prompt("tone"), judge), ToolCallF1()])


def label(sample, value, file="scores.jsonl", **fields):
    return HumanLabel(sample=sample, scorer="tone", value=value, file=file, **fields)


def without_file(labels):
    return [one.model_copy(update={"file": None}) for one in labels]


def test_scores_of_people_are_labels(written):
    path = written(V3, V2, BLOB)
    assert read_labels(path) == [
        label("t1", value=True, annotator="u1", reason="kind"),
        label("t2", value=False, annotator="u1"),
        label("t3", value=0.5),
    ]
    assert read_labels(written(FEEDBACK)) == [label("t1", 1.0, annotator="Ana", reason="fine")]
    assert read_labels(written(ANNOTATION)) == [label("t1", "fitting", annotator="u1", reason="fine")]


@pytest.mark.parametrize("score", [V3, FEEDBACK, ANNOTATION])
def test_pages_lists_and_lines_are_read_alike(written, score):
    other = (
        score | {"id": "other"} | ({"subject": {"kind": "trace", "id": "t9"}} if score is V3 else {"trace_id": "t9"})
    )
    other |= {"run_id": "t9"} if score is FEEDBACK else {}
    expected = without_file(read_labels(written(score, other)))
    assert [one.sample for one in expected] == ["t1", "t9"]
    for paged in (
        written(score, other, name="list.json"),
        written({"data": [score, other], "next_cursor": None}, name="page.json"),
        written({"data": [score], "meta": {"cursor": None}}, {"data": [other], "meta": {}}),
    ):
        assert without_file(read_labels(paged)) == expected
    found = read_label_file(written({"data": [score], "next_cursor": "c"}, name="page.json"))
    assert (without_file(found.labels), found.notices) == (expected[:1], [MORE_PAGES])


def test_a_table_of_scores_is_read_like_its_lines(tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("id,trace_id,name,value,data_type,source,author_user_id\ns1,t1,tone,1,BOOLEAN,ANNOTATION,u1\n")
    assert read_labels(path) == [label("t1", value=True, annotator="u1", file="scores.csv")]


def test_scores_of_judges_and_of_nobody_are_left_out_and_counted(written):
    judged = {**V3, "source": "EVAL", "id": "j"}
    unknown = [V2 | {"name": "outcome", "source": "API", "id": at, "traceId": at} for at in ("u0", "u1")]
    nothing = {**V2, "dataType": "CORRECTION", "value": 0, "stringValue": "Better."}
    path = written(V3, judged, *unknown, nothing)
    found = read_label_file(path)
    assert without_file(found.labels) == without_file(read_labels(written(V3, name="one.jsonl")))
    assert found.names == {"tone", "outcome"}
    assert found.notices == [
        "left out 1 score of judges",
        "left out 2 scores not known to be of people (named 'outcome'): --label outcome=SCORER uses them",
        "left out 1 score without a value, or with a correction in its place",
    ]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read_labels(path)
    assert [str(one.message) for one in caught] == [f"{path}: {notice}" for notice in found.notices]
    for score in ({**FEEDBACK, "feedback_source": {"type": "model"}}, {**ANNOTATION, "annotator_kind": "LLM"}):
        with pytest.raises(TraceError, match="contains no label that this run can use: 1 score of judges"):
            read_labels(written(score))
    code = {**ANNOTATION, "name": "outcome", "annotator_kind": "CODE"}
    with pytest.raises(TraceError, match="1 score not known to be of people"):
        read_labels(written(code))
    assert [one.source for one in read_labels(written(code), names={"outcome": "goal"})] == ["benchmark"]


def test_a_name_is_assigned_to_a_scorer(written, scored):
    path = written({**V3, "name": "outcome"}, {**V2, "source": "API", "name": "outcome", "traceId": "conversation"})
    named = "left out 1 score named 'outcome', like no scorer of the run: --label outcome=SCORER uses them"
    with pytest.raises(TraceError, match="named 'outcome', like no scorer of the run: --label outcome=SCORER uses"):
        read_labels(path, run=scored)
    labels = read_labels(path, names={"outcome": "tone"}, run=scored)
    found = [(one.sample, one.scorer, one.source) for one in labels]
    assert found == [("t1", "tone", "human"), ("conversation", "tone", "unknown")]
    mixed = read_label_file(written(V3, {**V3, "name": "outcome"}), run=scored)
    assert (len(mixed.labels), mixed.notices, mixed.names) == (1, [named], {"tone", "outcome"})
    both = read_label_file(written(V3, {**V3, "name": "outcome"}), names={"outcome": "tone"}, run=scored)
    assert len(both.labels) == 1
    told = "the score 'outcome' is the verdict of a judge, and cannot show whether tone"
    with pytest.raises(ConfigError, match=told):
        read_labels(written({**V3, "name": "outcome", "source": "EVAL"}, V3), names={"outcome": "tone"})


def test_names_are_assigned_in_files_of_labels_too(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("sample,scorer,value\ns1,outcome,yes\n")
    assert read_labels(path, names={"outcome": "tone"}) == [label("s1", "yes", file="labels.csv")]
    assert read_label_file(path, names={"outcome": "tone"}).names == {"outcome"}


def test_a_score_of_the_outermost_span_is_one_of_its_sample(written, scored):
    def of_span(name):
        return {**{key: value for key, value in ANNOTATION.items() if key != "trace_id"}, "span_id": name}

    found = read_label_file(written(of_span("root"), of_span("step"), of_span("elsewhere")), run=scored)
    assert found.labels == [label("conversation", "fitting", annotator="u1", reason="fine")]
    assert found.notices == [f"left out 2 scores {STEP}"]
    [by_trace] = read_labels(written({**ANNOTATION, "trace_id": "t2"}), run=scored)
    assert by_trace.sample == "conversation"
    [unknown] = read_labels(written({**ANNOTATION, "trace_id": "gone"}), run=scored)
    assert unknown.sample == "gone"
    with pytest.raises(TraceError, match=f"1 score {STEP}"):
        read_labels(written(of_span("root")))


def test_scores_of_anything_else_are_no_labels(written):
    for score in (
        V3 | {"subject": {"kind": "session", "id": "t1"}},
        V3 | {"subject": {"kind": "experiment", "id": "t1"}},
        V3 | {"subject": {"kind": "observation", "id": "o", "traceId": "t1"}},
        V2 | {"observationId": "o"},
        FEEDBACK | {"run_id": "child"},
    ):
        with pytest.raises(TraceError, match=f"1 score {STEP}"):
            read_labels(written(score))


def test_two_scores_of_one_person_and_other_lines_are_errors_with_their_line(written):
    told = "'u1' gives the sample 't1' the label False for 'tone', and True in line 1"
    with pytest.raises(TraceError, match=told) as raised:
        read_labels(written(V3, {**V3, "value": False}))
    assert raised.value.line == 2
    with pytest.raises(TraceError, match="expected a score of Langfuse like the first one, found") as raised:
        read_labels(written(V3, FEEDBACK))
    assert raised.value.line == 2


def test_broken_lines_and_documents_are_errors(tmp_path):
    path = tmp_path / "scores.jsonl"
    path.write_text(json.dumps(V3) + "\n{broken")
    with pytest.raises(TraceError, match="not JSON") as raised:
        read_labels(path)
    assert raised.value.line == 2
    path = tmp_path / "scores.json"
    path.write_text('{"data": ')
    with pytest.raises(TraceError, match="not JSON"):
        read_labels(path)


JUNK = [None, True, -1, 10**400, float("nan"), "", "x", "\ud800", [], [None], {}, {"": {}}, ["x"]]


@pytest.mark.parametrize("score", [V3, V2, BLOB, FEEDBACK, ANNOTATION])
def test_no_damage_raises_any_other_error(written, scored, score):
    changes = list(product([*score, "kind", "id", "label", "score"], JUNK))
    for field, junk in Random().sample(changes, 60):  # noqa: S311 - no secret
        for damaged in ({**score, field: junk}, {**score, "result": {field: junk}, "subject": {field: junk}}):
            with suppress(TraceError), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                labels = read_labels(written(score, {**damaged, "id": "other"}), run=scored)
                assert all(isinstance(one, HumanLabel) for one in labels)


def test_labels_of_the_files_of_others_audit_a_judge(shared_data, tmp_path):
    exports = shared_data / "exports"
    samples = list(read(exports / "langfuse_trace_api.json", on_error="raise"))
    judge = ScriptedJudge(lambda _: {"reason": "", "evidence": [], "verdict": "fitting"})
    made = run(samples, [PromptScorer(load_prompt("tone"), judge)], store=tmp_path / "runs.db")
    labels = read_labels(exports / "langfuse_scores.jsonl", names={"correct": "tone"}, run=made)
    assert labels == [label("tr1", value=True, annotator="u1", reason="ok", file="langfuse_scores.jsonl")]
    [found] = audit(made, labels).scorers
    assert (found.labels, found.annotators, found.unused_labels) == (1, 1, {})
    with pytest.raises(TraceError, match="contains no label that this run can use: 1 score of judges"):
        read_labels(exports / "langsmith_feedback.jsonl", run=made)
