"""The printed output of commands: no fact twice, no headline without a measurement, no run that does not exist."""

import io
import json
import re
from datetime import timedelta
from pathlib import Path

import pytest

from judgekit import AIMessage, HumanMessage, PromptScorer, Run, Sample, ScriptedJudge, load_prompt, run
from judgekit.analysis.audit import audit
from judgekit.analysis.labels import HumanLabel
from judgekit.runs.rows import RunRecord
from judgekit.runs.store import DEFAULT_RUNS_PATH, RunStore, now

F1 = ("--scorer", "tool_call_f1")


@pytest.fixture
def judged(cli) -> None:
    kept_run()


def kept_run() -> None:
    """Store a run in which two scorers ask a judge about twelve samples."""
    judge = ScriptedJudge(lambda _: {"reason": "", "evidence": [], "verdict": "fitting"})
    tone = load_prompt("tone")
    samples = [Sample.of([HumanMessage("Hi"), AIMessage("Ho")], id=f"s{number}") for number in range(12)]
    run(samples, [PromptScorer(tone, judge), PromptScorer(tone, judge, name="second")], store=DEFAULT_RUNS_PATH)


def labeled(*samples: str, scorer: str = "tone") -> str:
    rows = (f"{sample},{scorer},fitting" for sample in samples)
    Path("labels.csv").write_text("\n".join(["sample,scorer,value", *rows]), encoding="utf-8")
    return "labels.csv"


def test_a_glossary_follows_where_it_is_asked_for(cli, conversations):
    path = conversations(2)
    assert "glossary" not in cli("run", path, *F1).out
    assert "\nglossary\n" in cli("run", path, *F1, "--explain").out
    assert "\nglossary\n" in cli("runs", 1, "--explain").out


@pytest.mark.usefixtures("judged")
def test_an_audit_whose_labels_are_of_no_use_names_them_once_and_no_audit_record(cli):
    ended = cli("audit", 1, "--labels", labeled("nobody"))
    assert ended.code == 1
    assert ended.out.count("nobody") == 1
    assert "1 label left out: run 1 has no score for 'nobody'" in ended.out
    assert "audit record" not in ended.out
    assert "exit code 1: no judge was compared with labels" in ended.err


@pytest.mark.usefixtures("judged")
def test_an_audit_without_labels_says_so_once_for_each_scorer_and_names_the_option(cli):
    ended = cli("audit", 1)
    assert ended.code == 1
    assert ended.out.count("there are no labels") == 2
    assert ended.out.count("--labels FILE") == 2
    assert "not corrected" not in ended.out


@pytest.mark.usefixtures("judged")
def test_an_audit_record_that_was_there_before_is_not_one_of_this_audit(cli):
    first = cli("audit", 1, "--labels", labeled(*(f"s{number}" for number in range(12))))
    assert "\naudit record of tone: " in first.out
    kept_run()
    again = cli("audit", 2, "--labels", labeled("nobody"))
    assert "\nunchanged audit record (run 1) of tone: " in again.out


def test_a_limit_and_a_sample_are_not_mixed_without_a_word(cli, conversations):
    ended = cli("run", conversations(9), *F1, "--limit", 3, "--sample", 2)
    assert ended.code == 0
    assert "--limit comes first: --sample draws from the first 3 samples\n" in ended.err
    assert {row.index for row in Run.stored()} < {0, 1, 2}


def test_a_run_may_show_its_highest_scores(cli, conversations):
    out = cli("run", conversations(4), "--scorer", "max_messages:1", *F1, "--show", "highest:2").out
    assert re.search(r"tool_call_f1, highest 2 scores:\n  1\.00", out)
    assert "expected a number such as 3, or highest:3" in cli("runs", 1, "--show", "top:2").err


def test_added_scorers_are_those_that_are_shown(cli, conversations):
    cli("run", conversations(2), *F1)
    out = cli("score", 1, "--scorer", "max_messages:1", "--show", 1).out
    assert "max_messages, lowest 1 score:" in out
    assert "tool_call_f1, lowest" not in out


def test_a_dry_run_says_why_samples_would_be_skipped_and_what_sets_a_price(cli, conversations):
    words = ("run", conversations(3), "--scorer", "topic_adherence", "--judge", "openai/nobody-knows-it", "--dry-run")
    ended = cli(*words)
    assert "topic_adherence: 3 skipped: the sample has no reference_topics" in ended.out
    assert "no price is known for" not in ended.out  # nothing would be asked
    goal = cli(*words, "--scorer", "agent_goal_accuracy_without_reference").out
    assert "no price is known for openai/nobody-knows-it: price = {input = ..., output = ...}" in goal


def test_the_last_run_is_never_one_that_align_made(tmp_path):
    store = RunStore(tmp_path / "runs.sqlite")
    store.begin(RunRecord(started_at=now()))
    store.begin(RunRecord(started_at=now(), alignment="abc"))
    assert (store.record().number, store.record(2).number) == (1, 2)


def test_a_run_that_is_resumed_took_the_time_that_was_worked(cli, conversations):
    path = conversations(2)
    cli("run", path, *F1)
    store = RunStore(DEFAULT_RUNS_PATH)
    record = store.record(1)
    assert 0 <= record.took.total_seconds() < 60
    store.change(record.model_copy(update={"worked_seconds": 5.0, "started_at": record.started_at - timedelta(days=3)}))
    assert cli("score", 1, "--scorer", "max_messages:9").code == 0
    assert 5 <= store.record(1).took.total_seconds() < 65


def test_a_run_is_deleted_only_by_who_says_so(cli, conversations, monkeypatch):
    cli("run", conversations(2), *F1)
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    ended = cli("runs", "--remove", 1)
    assert (ended.code, "nothing is deleted: --yes deletes run 1 without asking" in ended.err) == (2, True)
    for answer, left in (("n\n", [1]), ("y\n", [])):
        terminal = io.StringIO(answer)
        terminal.isatty = lambda: True
        monkeypatch.setattr("sys.stdin", terminal)
        assert "Delete run 1 from .judgekit/runs.sqlite for good?" in cli("runs", "--remove", 1).out
        assert list(RunStore(DEFAULT_RUNS_PATH).numbers()) == left


def test_one_sample_is_shown_with_its_conversation_scores_and_reasons(cli, conversations):
    cli("run", conversations(3), *F1, "--scorer", "max_messages:1")
    (row, *_) = Run.stored().rows(numbers=[1])
    for named in (row.sample_id, "#1"):
        out = cli("show", 1, named).out
        assert out.startswith(f"sample {row.sample_id} (#1) of run 1\n")
        assert 'reference_tool_calls: [{"args"' in out
        assert f"\ntool_call_f1: {row.score.value:.2f}: {row.score.reason}\n" in out
    shown = json.loads(cli("show", 1, "#1", "--json", "--max-tokens", 500).out)
    assert [score["scorer"] for score in shown["scores"]] == ["tool_call_f1", "max_messages"]
    assert len(shown["conversation"]) < 2_500
    assert "no sample of run 1 is called 'nobody'" in cli("show", 1, "nobody").err
    assert "\nnot shown: a budget of 2 tokens is too small" in cli("show", 1, "#1", "--max-tokens", 2).out


def test_a_plan_whose_labels_are_too_few_says_how_many_conversations_to_record(cli, judged):
    ended = cli("plan-labels", 1, "--scorer", "tone", "--half-width", 0.05, "--agreement", 0.6, "--mean", 0.5)
    assert ended.code == 1
    assert "record more conversations: about 4,620 labeled" in ended.out  # 385, of which each has 12 copies


def test_a_label_that_two_scorers_of_a_question_could_use_is_left_out_once(judged):
    """Each scorer that an alignment made has the labels of the first, which were counted once for each."""
    stored = Run.stored()
    label = HumanLabel(sample="nobody", scorer="tone", value="fitting")
    names = {record.name: {"tone", "second"} for record in stored.scorers}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("judgekit.analysis.audit.question_names", lambda _, record: names[record.name])
        assert sum(audit(stored, [label]).unmatched.values()) == 1
