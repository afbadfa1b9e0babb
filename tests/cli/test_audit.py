"""The command ``judgekit audit``."""

import json
import re
from pathlib import Path

import pytest

from judgekit import (
    HumanMessage,
    PromptScorer,
    Run,
    Sample,
    ScriptedJudge,
    ToolCallF1,
    Trace,
    check_gates,
    load_prompt,
    run,
)
from judgekit.runs.store import DEFAULT_RUNS_PATH
from judgekit.traces.recording import Label

HOSTILE = "\x1b[2J\u202e"


def kept(store=DEFAULT_RUNS_PATH, labels=(), prefix="s"):
    """Keeps a run of 24 conversations, of which the judge finds the tone of every third one lacking."""
    judge = ScriptedJudge(
        lambda request: {
            "reason": f"as heard {HOSTILE}",
            "evidence": [],
            "verdict": "lacking" if request.messages[1].content.count("!") else "fitting",
        }
    )
    known = [Label(**label) for label in labels]
    texts = (f"Hi, {number}{'!' if number % 3 == 0 else '.'}" for number in range(24))
    samples = [
        Sample(id=f"{prefix}{number}", trace=Trace(messages=[HumanMessage(text)], labels=known))
        for number, text in enumerate(texts)
    ]
    run(samples, [PromptScorer(load_prompt("tone"), judge), ToolCallF1()], store=store)


def tone_of(verdict):
    return PromptScorer(
        load_prompt("tone"), ScriptedJudge(lambda _: {"reason": "", "evidence": [], "verdict": verdict})
    )


def written(values, path="labels.csv", prefix="s"):
    lines = [f"{prefix}{number},tone,{value},ann" for number, value in enumerate(values)]
    Path(path).write_text("\n".join(["sample,scorer,value,annotator", *lines]), encoding="utf-8")
    return path


def test_a_run_is_audited_and_leaves_an_audit_record_beside_it(cli):
    kept()
    written(["lacking", "fitting", "lacking"] * 8)
    code, out, err = cli("audit", "last", "--labels", "labels.csv", "--show", 2)
    assert (code, err) == (0, "labels.csv: 24 labels: 24 added\n")
    assert "kappa .40 [" in out  # of 24 samples 16 equal: (2/3 - 4/9) / (1 - 4/9)
    assert "the worst 2 of 8" in out
    (audit_record,) = Path(".judgekit/audits").iterdir()
    assert f"audit record of tone: {audit_record}" in out.replace("\n", "")
    kept_of_it = json.loads(audit_record.read_text(encoding="utf-8"))
    assert (kept_of_it["sample_count"], kept_of_it["sources"]) == (24, ["labels.csv"])


def test_sheets_of_a_run_are_stored_and_count_together_and_without_a_file(cli):
    kept()
    verdicts = ["lacking", "fitting", "lacking"] * 8
    written(verdicts[:12], "first.csv")
    written(verdicts, "second.csv")
    cli("audit", 1, "--labels", "first.csv")
    assert cli("audit", 1, "--labels", "second.csv").err == "second.csv: 24 labels: 12 as before, 12 added\n"
    for sheet in (("--labels", "first.csv"), ()):
        code, out, err = cli("audit", 1, *sheet)
        assert (code, err) == (0, "first.csv: 12 labels: 12 as before\n" if sheet else "")
        assert "audit of run 1 with second.csv" in out
        assert "n=24 from 1 person" in out
    written(["fitting"] * 24, "second.csv")
    assert cli("audit", 1, "--labels", "second.csv").err == "second.csv: 24 labels: 16 changed, 8 as before\n"
    said = " ".join(cli("audit", 1).out.split())
    assert re.search(r"16 of 24 labels changed since the audit of \d+ \w+ \d+, 8 towards the judge", said)
    cli("runs", 1, "-o", "run.md")
    assert "audited less than a day ago: kappa" in Path("run.md").read_text(encoding="utf-8")


def test_what_was_recorded_cannot_steer_the_terminal(cli):
    kept(prefix=f"s{HOSTILE}")
    written(["lacking"] * 24, prefix=f"s{HOSTILE}")
    _, out, _ = cli("audit", 1, "--labels", "labels.csv")
    assert "\x1b" not in out
    assert "\u202e" not in out


def test_an_audit_is_written_as_json_and_as_a_page(cli):
    kept()
    written(["fitting"] * 24)
    files = ("-o", "found.json", "-o", "found.html")
    assert cli("audit", 1, "--labels", "labels.csv", "--guarantee", 0.1, "--delta", 0.1, *files).code == 0
    found = json.loads(Path("found.json").read_text(encoding="utf-8"))
    (tone,) = found["scorers"]
    assert (found["sources"], tone["sample_count"], tone["correction"]["corrected"]["value"]) == (["labels.csv"], 24, 1)
    assert tone["guarantee"]["alpha"] == 0.1
    assert Path("found.html").read_text(encoding="utf-8").lower().startswith("<!doctype html>")


def test_without_a_file_the_labels_that_were_recorded_are_taken(cli):
    kept(
        labels=[
            {"name": "was_kind", "value": "fitting", "source": "human"},
            {"name": "tool_call_f1", "value": 1, "source": "benchmark"},
        ]
    )
    code, out, _ = cli("audit", 1, "--label", "was_kind=tone", "-o", "found.json")
    assert code == 0
    found = json.loads(Path("found.json").read_text(encoding="utf-8"))
    assert (found["sources"], found["scorers"][0]["sample_count"]) == (["labels recorded with the conversations"], 24)
    assert found["unmatched"] == {"tool_call_f1 asks no judge": 24}
    code, out, _ = cli("audit", 1)
    said = " ".join(out.split())
    assert (
        "there are no labels: judgekit label 1 draws samples to label, and --labels FILE reads the labels; --label NAME=tone uses recorded ones: "
        in said
    )
    assert "'was_kind', 'tool_call_f1'" in said


def test_scores_of_another_system_are_labels_under_the_name_that_is_given(cli):
    kept()
    score = {"dataType": "BOOLEAN", "authorUserId": "ann"}
    scores = [
        {**score, "name": name, "source": source, "value": at % 3 != 0, "subject": {"kind": "trace", "id": f"s{at}"}}
        for at in range(24)
        for name, source in (("kindness", "ANNOTATION"), ("kindness", "EVAL"), ("other", "ANNOTATION"))
    ]
    Path("scores.jsonl").write_text("\n".join(map(json.dumps, scores)))
    ended = cli("audit", "1", "--labels", "scores.jsonl", "--label", "kindness=tone", "-o", "audit.json")
    assert ended.code == 0
    assert "scores.jsonl: left out 24 scores of judges\n" in ended.err
    assert (
        "scores.jsonl: left out 24 scores named 'other', like no scorer of the run: --label other=SCORER" in ended.err
    )
    [found] = json.loads(Path("audit.json").read_text())["scorers"]
    assert (found["labels"], found["annotators"]) == (24, 1)
    assert json.loads(Path("audit.json").read_text())["sources"] == ["scores.jsonl"]
    ended = cli("audit", "1", "--labels", "scores.jsonl")
    assert ended.code == 2
    assert "contains no label that this run can use: 24 scores named 'kindness', like no scorer" in ended.err
    ended = cli("audit", "1", "--labels", "scores.jsonl", "--label", "kindness=tone", "--label", "success=tone")
    assert ended.code == 2
    assert "success" in ended.err


@pytest.mark.parametrize("command", [("inspect", "scores.jsonl"), ("run", "scores.jsonl", "--scorer", "tool_call_f1")])
def test_a_file_of_scores_in_place_of_conversations_names_the_command_for_it(cli, command):
    Path("scores.jsonl").write_text(json.dumps({"name": "ok", "value": 1, "source": "ANNOTATION", "traceId": "t"}))
    ended = cli(*command)
    assert ended.code == 2
    said = "contains scores of Langfuse and no conversations; use it with the run of these conversations"
    assert f"{said}: judgekit audit RUN --labels FILE" in ended.err


def test_a_judge_is_not_audited_against_its_own_verdicts(cli):
    kept(labels=[{"name": "tone", "value": "fitting", "source": "judge"}])
    code, out, _ = cli("audit", 1)
    assert (code, "there are no labels" in " ".join(out.split())) == (1, True)
    assert not Path(".judgekit/audits").exists()
    code, _, err = cli("audit", 1, "--label", "tone=tone")
    assert code == 2
    assert "the recorded label 'tone' is the verdict of a judge, and cannot show whether tone is right" in err


def test_what_cannot_be_audited_says_why(cli):
    kept()
    run([Sample.of([HumanMessage("Hi")], id="s")], [ToolCallF1()], store=DEFAULT_RUNS_PATH)
    for words, said in (
        ((1, "--labels", "none.csv"), "none.csv"),
        ((1, "--label", "was_kind"), "--label was_kind: expected a recorded label and a scorer, such as"),
        ((1, "--label", "was_kind=tune"), "no scorer of the run is called 'tune'. Did you mean 'tone'?"),
        ((1, "--guarantee", "2"), "guarantee must be between 0 and 1, found 2"),
        ((9,), "contains no run 9"),
        ((1, "-o", "found.pdf"), "found.pdf: unsupported extension '.pdf'; supported: .json, .html"),
        ((1, "-o", "found.json", "-o", "no/found.html"), "no/found.html: there is no folder no; create it first"),
        ((2,), "run 2 asked no judge, so there is nothing to audit"),
    ):
        code, _, err = cli("audit", *words)
        assert (code, Path("found.json").exists()) == (2, False)
        assert said in err.replace("\n", " ")


def test_a_broken_audit_record_is_named_and_costs_no_report_and_an_audit_writes_it_anew(cli):
    kept()
    written(["fitting"] * 24)
    cli("audit", 1, "--labels", "labels.csv")
    (audit_record,) = Path(".judgekit/audits").iterdir()
    audit_record.write_text("{", encoding="utf-8")
    assert cli("runs", 1, "-o", "run.csv", "-o", "run.md").code == 0
    assert Path("run.csv").exists()
    assert f"not audited ({audit_record}: not a valid audit record" in Path("run.md").read_text(encoding="utf-8")
    (gate,) = check_gates(Run.stored(1), ["tone.corrected >= 0"]).gates
    assert not gate.met
    assert audit_record.name in gate.value_text
    cli("audit", 1, "--labels", "labels.csv")
    assert Run.stored(1).audited["tone"].startswith("audited less than a day ago: kappa")


def test_a_recorded_judge_is_added_to_a_run_without_one_and_audited(cli):
    """As the message says that an audit of such a run gives."""
    labels = [{"name": "quality", "value": 1, "source": "judge"}, {"name": "quality", "value": 1, "source": "human"}]
    trace = {"messages": [{"role": "user", "content": "Hi"}], "labels": labels}
    Path("samples.jsonl").write_text("".join(json.dumps({"id": f"s{at}", "trace": trace}) + "\n" for at in range(30)))
    cli("run", "samples.jsonl", "--scorer", "max_messages:3")
    told = " ".join(cli("audit", 1).err.split())
    assert "judgekit score 1 --scorer imported:LABEL adds an imported judge's scores (labels: quality)" in told
    assert cli("score", 1, "--scorer", "imported:quality").code == 0
    ended = cli("audit", 1)
    assert ended.code == 0
    assert "30 labels on 30 samples" in ended.out
    assert "reports no model for answers of imported judge" in " ".join(ended.out.split())
