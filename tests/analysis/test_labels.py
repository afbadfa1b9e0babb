"""Human labels: how they are read, and what they are worth."""

import csv
import io
import json
import pathlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit import AIMessage, Pairwise, Panel, Repeat, Run, Sample, ScriptedJudge, Selective, run, scorer
from judgekit.analysis.labels import HumanLabel, deduplicate, label_value, read_labels, recorded_labels
from judgekit.errors import ConfigError, TraceError
from judgekit.reports.csv_export import csv_table
from judgekit.runs.rows import ScorerRecord
from judgekit.scorers.goal import AgentGoalAccuracyWithReference
from judgekit.traces.recording import Label

GOAL = HumanLabel(sample="s1", scorer="goal", value="yes")
MET = ScorerRecord(
    name="goal",
    signature=None,
    identity=None,
    judged=True,
    scale={"Done": 1.0, "partly": 0.5, "no": 0.0, "1": 0.25, "does not apply": "skipped", "unclear": "abstained"},
)


@pytest.fixture
def written(tmp_path):
    """Gives a function that writes a file and says where it is."""

    def write(content: str | bytes, name: str = "labels.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


HAND = "sample,scorer,value,annotator\ns1,goal,yes,Ana\ns2,goal,0.5,\ns3,goal,,Ana\n"
READ = [
    HumanLabel(sample="s1", scorer="goal", value="yes", annotator="Ana", file="labels.csv"),
    HumanLabel(sample="s2", scorer="goal", value="0.5", file="labels.csv"),
    HumanLabel(sample="s3", scorer="goal", annotator="Ana", file="labels.csv"),
]


def test_a_table_is_read_as_spreadsheets_write_it(written):
    semicolons, marked = HAND.replace(",", ";").replace("\n", "\r\n"), f"\ufeff{HAND}"
    wide = marked.encode("utf-16-le")
    for content in (HAND, semicolons, HAND.replace(",", "\t"), marked, f"\ufeff{marked}", wide, f"\n{HAND}\n,,,\n"):
        assert list(read_labels(written(content))) == READ, content


def test_json_lines_are_read_with_their_types(written):
    lines = [
        {"sample": 7, "scorer": "goal", "value": True, "reason": "=so", "annotator": 3},
        {"sample": "s", "scorer": "goal", "value": 0.25, "run": 2, "number": 0}
        | {"selection": "random", "probability": 0.5},
        {"sample": "t", "scorer": "goal", "value": None},
    ]
    path = written("\n".join(map(json.dumps, lines)), "labels.jsonl")
    typed, drawn, blank = read_labels(path)
    assert (typed.sample, typed.value, typed.reason, typed.annotator) == ("7", True, "=so", "3")
    assert (drawn.value, drawn.run, drawn.number, drawn.selection, drawn.probability) == (0.25, 2, 0, "random", 0.5)
    assert blank.value is None


def test_a_decimal_comma_is_one_and_what_was_shown_to_people_is_passed_over(written):
    text = 'sample;scorer;question;conversation;value;probability\ns;goal;"Was\nit; done?";long;0,5;0,25\n'
    (label,) = read_labels(written(text))
    assert (label.probability, label_value(label, MET)) == (0.25, 0.5)


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1), st.text("=+-@'\t\r\n\uff1d1 x"))
def test_what_was_made_safe_for_a_spreadsheet_is_read_as_it_was(tmp_path_factory, name, reason):
    path = tmp_path_factory.mktemp("labels") / "labels.csv"
    row = ("=1+1", "goal", "yes", f"a{name}", f"={reason}")
    path.write_bytes("".join(csv_table([("sample", "scorer", "value", "annotator", "reason"), row])).encode())
    assert "'=1+1" in next(csv.reader(io.StringIO(path.read_text().splitlines()[1])))
    (label,) = read_labels(path)
    assert (label.sample, label.annotator, label.reason) == ("=1+1", f"a{name}".strip(), f"={reason}")


def test_a_label_may_name_the_message_where_it_went_wrong(written):
    table = "sample,scorer,value,message\na,failure_analysis,forgot,4\nb,failure_analysis,forgot,4.2.1\nc,x,no,\n"
    assert [label.message for label in read_labels(written(table))] == [4, "4.2.1", None]
    with pytest.raises(TraceError, match=r"expected the number of a message, such as 4 or 4\.2\.1, found 'four'"):
        read_labels(written("sample,scorer,value,message\na,x,no,four\n"))


def test_an_id_may_be_blank_where_there_is_a_number(written):
    (label,) = read_labels(written("sample,scorer,value,number\n,goal,yes,3\n"))
    assert (label.sample, label.number) == ("", 3)


def test_what_cannot_be_read_is_said_with_its_place(written):
    cases = [
            ("sample,scorrer,value\ns,goal,yes\n", r"\(line 2\): no column of labels is called 'scorrer'. Did you mean 'scorer'"),
            ("sample,value\ns,yes\n", r"has no scorer; .* columns: sample, scorer, value, message, annotator"),
            ("sample,scorer,value\ns,goal,yes,no\n", r"\(line 2\): has 4 cells, but the first row names 3 columns"),
            ("sample,scorer,value,number\ns,goal,yes,first\n", r"\(line 2\): number: .* found 'first'"),
            ("sample,scorer,value,probability\ns,goal,yes,1.5\n", r"\(line 2\): probability: .* found '1\.5'"),
            ("sample,scorer,value,selection\ns,goal,yes,by me\n", r"selection: Input should be 'random', 'stratified' or 'convenience'"),
            ("sample,scorer,value\n,goal,yes\n", r"\(line 2\): sample: Field required"),
            ("sample,scorer,value\ns,goal,yes\nt,goal,yes\ns,goal,no\n", r"\(line 4\): an unnamed person gives the sample 's' the label 'no' for 'goal', and 'yes' in line 2; keep one"),
            (HAND.encode() + "s4,goal,yes,Zoë\n".encode("cp1252"), r"\(line 5\): not UTF-8: byte 0xeb at offset \d+; save it again in UTF-8"),
            ("sample,scorer,value\n好的测试样本一,目标,可以\n好的测试样本二,目标,不行\n".encode("gb18030"), r"\(line 2\): not UTF-8: byte 0x.. at offset \d+; save it again in UTF-8"),
            ("sample,scorer,value\n", "contains no rows"),
            ("", "is empty"),
        ]  # fmt: skip
    for content, said in cases:
        with pytest.raises(TraceError, match=said) as found:
            read_labels(written(content))
        assert "labels.csv" in str(found.value)


def test_a_line_that_is_no_label_is_said_with_its_number(written):
    for content, said in (
        ('{"sample": "s", "scorer": "g"}', r"\(line 1\): has no value"),
        ('{"sample": "s", "scorer": "g", "value": 1, "rater": "x"}', "no column of labels is called 'rater'"),
        ('{"sample": "s", "scorer": "g", "value": [1]}', "value"),
        ('{"sample": "s", "scorer": "g", "value": NaN}', "value"),
        ("[1]", "expected an object with sample, scorer, value, found"),
        ("{", "not JSON"),
    ):
        with pytest.raises(TraceError, match=said):
            read_labels(written(f"{content}\n", "labels.jsonl"))


def test_a_file_of_another_kind_is_refused(written):
    with pytest.raises(TraceError, match=r"labels are read from CSV .* and from JSON lines"):
        read_labels(written('[{"sample": "s"}]', "labels.json"))


def test_what_a_person_says_twice_counts_once_and_a_blank_gives_way():
    blank = GOAL.model_copy(update={"value": None})
    other = GOAL.model_copy(update={"annotator": "Bo", "value": "no"})
    assert list(deduplicate([blank, GOAL, GOAL, other, blank])) == [GOAL, other]
    with pytest.raises(TraceError, match="'Bo' gives the sample 's1' the label 'yes' for 'goal', and 'no' before"):
        deduplicate([other, other.model_copy(update={"value": "yes"})])


def test_a_label_is_worth_what_the_scale_says_before_it_is_a_number_or_a_word():
    cases = [
            ("Done", 1.0), ("done", 1.0), ("partly", 0.5), ("no", 0.0), ("does not apply", "skipped"),
            ("unclear", "abstained"), ("n/a", "skipped"), ("Not applicable", "skipped"), (None, None), (True, 1.0), (False, 0.0), ("yes", 1.0), ("FAIL", 0.0), ("pass", 1.0), ("0.7", 0.7),
            ("0,7", 0.7), (0.7, 0.7), (0.0, 0.0), ("1", 0.25), (1.0, 0.25),
        ]  # fmt: skip
    for value, worth in cases:
        assert label_value(GOAL.model_copy(update={"value": value}), MET) == worth


def test_a_label_of_no_scale_is_refused_with_the_choices():
    told = r"'goal' does not know the label .* of the sample 's1'.*; use one of Done, partly, no, 1, .* a number in"
    for value in ("maybe", "1.01", "-0.1", "nan", 7.0, ""):
        with pytest.raises(TraceError, match=told):
            label_value(GOAL.model_copy(update={"value": value}), MET)


JUDGE = ScriptedJudge("")
GOALS = AgentGoalAccuracyWithReference(JUDGE)
PAIRS = Pairwise("Which is kinder?", JUDGE)


def test_the_labels_that_a_scorer_gives_are_worth_what_its_scores_are():
    for judged, worth in (
        (GOALS, {"achieved": 1, "not_achieved": 0}),
        (PAIRS, {"better": 1, "tie": 0.5, "worse": 0}),
        (Repeat(GOALS, 3), {"Achieved": 1}),
        (Panel([PAIRS, Repeat(PAIRS, 3)]), {"worse": 0}),
        (Selective(Repeat(PAIRS, 3), 0.8, escalate=PAIRS), {"tie": 0.5}),
    ):
        record = ScorerRecord.of(judged)
        assert {label: label_value(GOAL.model_copy(update={"value": label}), record) for label in worth} == worth


def test_a_share_of_goals_has_no_labels():
    assert ScorerRecord.of(AgentGoalAccuracyWithReference(JUDGE, partial=True)).scale == {}


@scorer
def goal(sample: Sample) -> float:
    """Never mind."""
    return 1.0


@scorer
def other(sample: Sample) -> float:
    """Never mind either."""
    return 1.0


def recorded(id: str, *labels: Label, label: str | None = None) -> Sample:
    made = Sample.of([AIMessage("Hi")], id=id, label=label)
    return made.model_copy(update={"trace": made.trace.model_copy(update={"labels": labels})})


ANA = Label("goal", value=True, source="human", annotator="Ana", reason="so")


def test_labels_that_came_with_the_recordings_are_those_of_all_but_judges_and_say_who_gave_them():
    samples = [
        recorded("a", ANA, Label("goal", value=False, source="judge")),
        recorded("b", Label("goal", 0, source="benchmark"), Label("other", "yes", source="human")),
        recorded("c", Label("goal", 1), label="no"),
    ]
    scored = run(samples, [goal])
    found = recorded_labels(scored, {})
    assert [(one.sample, one.number, one.value, one.annotator, one.reason, one.source) for one in found] == [
        ("a", 0, True, "Ana", "so", "human"),
        ("b", 1, 0.0, "benchmark", "", "benchmark"),
        ("c", 2, 1.0, "unknown", "", "unknown"),
    ]
    named = recorded_labels(scored, {"other": "goal", "label": "goal"})
    assert [(one.sample, one.scorer, one.value, one.run, one.annotator, one.source) for one in named] == [
        ("b", "goal", "yes", 1, None, "human"),
        ("c", "goal", "no", 1, "benchmark", "benchmark"),
    ]


def test_names_that_are_not_there_are_refused_with_the_nearest():
    scored = run([recorded("a", Label("outcome", True))], [goal])  # noqa: FBT003
    with pytest.raises(ConfigError, match=r"no scorer of the run is called 'gaol'. Did you mean 'goal'"):
        recorded_labels(scored, {"outcome": "gaol"})
    with pytest.raises(ConfigError, match=r"no label that was recorded is called 'outcomes'. Did you mean 'outcome'"):
        recorded_labels(scored, {"outcomes": "goal"})


def without_text(scored: Run) -> Run:
    return Run(scored.store, scored.record.model_copy(update={"keeps_text": False}))


@pytest.mark.parametrize("as_kept", [lambda made: made, without_text], ids=["with text", "without"])
def test_the_verdict_of_a_judge_is_refused_by_its_name(as_kept):
    verdict = Label("tone\x1b", value=True, source="judge")
    scored = as_kept(run([recorded("a", verdict, Label("goal", 1))], [goal]))
    told = r"the recorded label 'tone\\x1b' is the verdict of a judge, .* goal is right"
    with pytest.raises(ConfigError, match=told):
        recorded_labels(scored, {"tone\x1b": "goal"})


def test_where_no_text_is_kept_it_is_still_known_who_gave_a_label():
    samples = [
        recorded("a", Label("goal", value=True, source="judge")),
        recorded("b", Label("goal", value=False, source="human", annotator="Ana", reason="so")),
        recorded("c", Label("goal", 1), label="no"),
    ]
    scored = without_text(run(samples, [goal, other]))
    found = recorded_labels(scored, {})
    told = [(one.sample, one.number, one.value, one.annotator, one.reason, one.source) for one in found]
    assert told == [("b", 1, 0.0, None, "", "human"), ("c", 2, 1.0, "unknown", "", "unknown")]
    (named,) = recorded_labels(scored, {"label": "goal"})
    assert (named.sample, named.value, named.source) == ("c", "no", "benchmark")


def test_labels_in_files_are_of_people_and_have_no_column_that_says_otherwise(written):
    assert {label.source for label in read_labels(written(HAND))} == {"human"}
    with pytest.raises(TraceError, match="no column of labels is called 'source'"):
        read_labels(written("sample,scorer,value,source\ns,goal,yes,benchmark\n"))


LINES = '{"sample": "s1", "scorer": "goal", "value": "yes"}\n'


def test_json_lines_with_marks_may_be_joined_to_one_file(written):
    other = LINES.replace("s1", "s2")
    found = read_labels(written(f"\ufeff{LINES}\ufeff{other}", "labels.jsonl"))
    assert [label.sample for label in found] == ["s1", "s2"]


@pytest.mark.parametrize("name", ["labels.csv", "labels.jsonl"])
def test_an_error_that_is_kept_holds_no_file_open(tmp_path, name):
    path = tmp_path / name
    path.write_text("sample,scorer,wrong\n1,tone,1\n" if name.endswith(".csv") else '{"sample": "1"}\n' * 2)
    with pytest.raises(TraceError) as kept:
        read_labels(path)
    assert str(kept.value)
    opened = [str(one.readlink()) for one in pathlib.Path("/proc/self/fd").iterdir() if one.is_symlink()]
    assert str(path) not in opened
