"""``judgekit anchors``, with a judge on this machine that changes behind its name."""

import json
import re
import signal
from pathlib import Path

import pytest

SCORER = "agent_goal_accuracy_without_reference"
ANCHORS = Path(".judgekit/anchors") / f"{SCORER}.jsonl"


def changed(judging, passes) -> None:
    """From here on, the judge passes other conversations."""

    def answer(conversation: str) -> dict:
        verdict = "achieved" if passes(judging.number(conversation)) else "not_achieved"
        return {"goals": [{"goal": "g", "end_state": "e", "reason": "r", "evidence": [2], "verdict": verdict}]}

    judging.answer = answer


@pytest.fixture
def scored(cli, judging, conversations):
    """A run of so many conversations."""

    def score(number: int = 60, *options: str) -> None:
        assert cli("run", conversations(number), "--scorer", SCORER, *options).code == 0

    return score


def test_an_unchanged_judge_is_asked_again_and_stays_unchanged(cli, judging, scored):
    scored()
    assert judging.asked.total() == 60
    frozen = cli("anchors", "freeze", "last", "-n", "40")
    assert (frozen.code, frozen.err) == (0, "")
    assert frozen.out == (
        f"{SCORER}: 40 anchors (0 labeled by people), frozen with 3 verdicts on each in {ANCHORS}, "
        "which holds the text of the recordings and stays on this machine\n"
    )
    assert judging.asked.total() == 60 + 3 * 40
    checked = cli("anchors", "check")
    assert (checked.code, checked.err) == (0, "")
    assert re.fullmatch(
        f"{SCORER}: judge unchanged on 40 anchors, checked today \\(a change of 10 % is found within 4 checks in about "
        r"\d+ %; at most one false alarm in 100 checks, on average\)\n",
        checked.out,
    )
    assert judging.asked.total() == 60 + 4 * 40
    assert "anchors checked less than a day ago" in cli("runs", "last").out


def test_a_change_raises_an_alarm_that_suspends_the_audit_record(cli, judging, scored):
    scored()
    labels = "".join(
        json.dumps(
            {
                "sample": f"s{number}",
                "scorer": SCORER,
                "value": number % 2 == 0,
                "annotator": "ann",
                "selection": "random",
                "probability": 1,
            }
        )
        + "\n"
        for number in range(60)
    )
    Path("labels.jsonl").write_text(labels)
    assert "audit record" in cli("audit", "last", "--labels", "labels.jsonl").out
    assert "60 anchors (60 labeled by people)" in cli("anchors", "freeze", "last", "-n", "60").out
    for _ in range(2):
        assert cli("anchors", "check", SCORER).code == 0
    gate = ("run", "samples.jsonl", "--scorer", SCORER, "--gate", f"{SCORER}.corrected.lower >= 0.1")
    assert cli(*gate).code == 0
    changed(judging, lambda number: number % 2 == 0 or number < 20)
    alarm = cli("anchors", "check")
    assert (alarm.code, alarm.err) == (1, "")
    first, *turned = alarm.out.splitlines()
    assert re.fullmatch(
        f"{SCORER}: changed since \\d+ [A-Z][a-z]+ 20\\d\\d: 10 anchors turned, 10 of them towards pass; "
        "agreement with people, on 60 anchors, got worse",
        first,
    )
    assert sorted(turned) == sorted(f"  s{number}: 0 -> 1, people 0" for number in range(1, 20, 2))
    failed = cli(*gate)
    assert failed.code == 1
    assert "is suspended: its anchors show on" in failed.err
    assert "not audited (the audit record of run 1 is suspended" in cli("runs", "last").out
    assert cli("anchors", "check").code == 1  # the alarm stands
    again = cli("audit", "last", "--labels", "labels.jsonl")
    assert again.code == 0
    assert cli(*gate).code == 0
    assert "anchors checked less than a day ago" in cli("runs", "last").out


def test_a_dry_run_tells_the_cost_and_sends_nothing(cli, judging, scored):
    scored()
    asked = judging.asked.total()
    planned = cli("anchors", "freeze", "last", "-n", "40", "--dry-run")
    assert re.match(
        f"{SCORER}: 3 rounds, each of 40 requests, 0 from cache, about [\\d,]+ tokens, unknown cost", planned.out
    )
    assert not ANCHORS.exists()
    assert judging.asked.total() == asked
    cli("anchors", "freeze", "last", "-n", "40")
    planned = cli("anchors", "check", "--dry-run")
    assert (planned.code, planned.out.partition(" requests")[0]) == (0, f"{SCORER}: 1 round, each of 40")
    assert judging.asked.total() == asked + 120


def test_a_failed_request_is_no_turned_anchor(cli, judging, scored):
    scored(30)
    cli("anchors", "freeze", "last")
    usual = judging.answer

    def answer(conversation: str) -> dict:
        return {"nothing": 1} if judging.number(conversation) < 12 else usual(conversation)

    judging.answer = answer
    checked = cli("anchors", "check")
    assert checked.code == 0
    assert "unchanged on 18 anchors" in checked.out
    assert "; 12 gave no verdict" in checked.out
    judging.answer = lambda _: {"nothing": 1}
    stopped = cli("anchors", "check")
    assert stopped.code == 1
    assert "stopped: 30 of 30 anchors got no verdict" in stopped.err
    judging.answer = usual
    assert "unchanged on 30 anchors" in cli("anchors", "check").out


def test_a_judge_with_other_settings_is_refused(cli, judging, scored):
    scored(30)
    cli("anchors", "freeze", "last")
    config = Path("judgekit.toml")
    config.write_text(config.read_text() + "params = {temperature = 0.5}\n")
    refused = cli("anchors", "check")
    assert refused.code == 2
    assert (
        f"{SCORER} is not the scorer that was frozen or run: judge.params.temperature was None and is 0.5"
        in refused.err
    )
    assert "another" not in cli("runs", "last").out
    refused = cli("anchors", "freeze", "last", "--replace")
    assert refused.code == 2
    assert "is not the scorer that was frozen or run" in refused.err


@pytest.mark.parametrize(
    ("number", "config", "scorer", "why"),
    [
        (
            12,
            "",
            SCORER,
            "has 12 recordings that agent_goal_accuracy_without_reference scored and can be asked about again; expected",
        ),
        (30, "store_text = false\n", SCORER, "run 1 keeps no recordings"),
        (30, "", "tool_call_f1", "tool_call_f1 asks no judge"),
        (30, "", "other", "no scorer of the run"),
    ],
)
def test_what_cannot_be_frozen_is_refused(cli, judging, conversations, number, config, scorer, why):
    text = Path("judgekit.toml").read_text()
    Path("judgekit.toml").write_text(config + text)
    cli("run", conversations(number), "--scorer", SCORER, "--scorer", "tool_call_f1")
    refused = cli("anchors", "freeze", "last", "--scorer", scorer)
    assert refused.code == 2
    assert why in refused.err
    assert not ANCHORS.exists()


def test_a_judge_that_cannot_be_checked_does_not_keep_others_from_it(cli, judging, conversations):
    cli("run", conversations(30), "--scorer", SCORER, "--scorer", f"{SCORER}:as=second")
    assert "expected one scorer that asks a judge, found " in cli("anchors", "freeze", "last").err
    for name in (SCORER, "second"):
        assert cli("anchors", "freeze", "last", "--scorer", name, "-n", "20").code == 0
    Path(".judgekit/anchors/.part-0123abcd-x.jsonl").write_text("left by a process that was killed")
    ANCHORS.write_bytes(b"broken\n" + ANCHORS.read_bytes())
    checked = cli("anchors", "check")
    assert checked.code == 2
    assert f"{ANCHORS}: line 1: " in checked.err
    assert checked.out.startswith("second: judge unchanged on 20 anchors")
    removed = cli("runs", "--yes", "--remove", "last")
    assert f"recordings that were frozen are in {ANCHORS}; .judgekit/anchors/second.jsonl" in removed.out


def test_without_anchors_there_is_nothing_to_check(cli):
    assert "judgekit anchors freeze RUN makes some" in cli("anchors", "check").err


@pytest.mark.processes
def test_what_is_killed_loses_no_verdict_and_doubles_none(cli, judging, scored, started, until):
    scored(100)
    judging.seconds, before, kills = 0.02, judging.asked.total(), 0
    for words, moments, requests in (
        (("anchors", "freeze", "last", "-n", "100"), {90: signal.SIGKILL, 180: signal.SIGINT}, 300),
        (("anchors", "check"), {340: signal.SIGKILL, 370: signal.SIGTERM}, 400),
    ):
        for moment, kind in moments.items():
            process = started(*words)
            until(lambda: judging.asked.total() - before > moment or process.poll() is not None)  # noqa: B023
            process.send_signal(kind)
            assert process.wait() == (-kind if kind == signal.SIGKILL else 128 + kind)
            kills += kind == signal.SIGKILL
            lines = map(json.loads, ANCHORS.read_bytes().split(b"\n")[:-1])
            verdicts = [(line["round"], line["recording"]) for line in lines if line["kind"] == "draw"]
            assert len({*verdicts}) == len(verdicts) >= moment - 2 * 16
        assert cli(*words).code == 0
        assert requests <= judging.asked.total() - before <= requests + kills * 16
