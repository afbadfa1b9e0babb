"""The command ``judgekit failures``."""

import json
from pathlib import Path

import pytest

from tests.failures.conftest import analyzed, failing  # noqa: F401 - a fixture

SYMPTOMS = [f"forgot the fee of order {number}" for number in range(9)]


@pytest.fixture
def stored(analyzed):  # noqa: F811
    """Stores runs in the file that commands read by default."""
    return analyzed


def test_issues_are_shown_with_their_shares_and_the_messages_to_open(stored, cli):
    stored({**failing(["forgot it", "forgot that"]), "s2": None})
    code, out, err = cli("failures", "last")
    assert code == 0
    assert out.startswith("2 of 3 samples failed visibly: 1 issue (1 new)")
    (row,) = (line for line in out.splitlines() if line.startswith(" missing_call at refund "))
    assert "66.7% [20.8%, 93.9%]" in row  # Wilson's interval of 2 of 3
    assert "  to change: instructions: say more about refund" in out
    assert 's0 message 2: forgot it: "Done."' in out
    assert err == "issues: .judgekit/failures/agent.failure_analysis.json\n"


def test_a_ticket_and_a_file_for_programs_are_written_and_recorded_text_is_no_markup(stored, cli):
    stored(failing(["<img src=x> [a](b) | c"]))
    assert cli("failures", 1, "-o", "failures.md", "-o", "failures.json")[0] == 0
    text = Path("failures.md").read_text()
    assert '- `s0 message 2: <img src=x> [a](b) ¦ c: "Done."`' in text
    (issue,) = json.loads(Path("failures.json").read_text())["issues"]
    assert (issue["state"], issue["samples"], issue["failures"][0]["message"]) == ("new", 1, 2)
    assert issue["share"]["low"] < issue["share"]["value"] == 1


def test_people_decide_on_issues_and_gates_hold_them_to_it(stored, cli):
    stored(failing(["forgot it"]))
    gates = ("--gate", "failures.new <= 0", "--gate", "failures.back <= 0")
    code, _, err = cli("failures", 1, *gates)
    assert code == 1
    assert "not met: failures.new <= 0: found 1 (missing_call at refund (" in err
    (identifier,) = (
        issue["id"]
        for issue in json.loads(Path(".judgekit/failures/agent.failure_analysis.json").read_text())["issues"]
    )
    code, out, _ = cli("failures", 1, "--status", f"{identifier}=fixed", "--rename", f"{identifier}=No fee")
    assert code == 0
    assert "No fee" in out
    stored({"s0": None})
    assert cli("failures", 2, *gates)[0] == 0
    stored(failing(["forgot it"]))
    code, out, err = cli("failures", 3, "--since", 2, *gates)
    assert code == 1
    assert "back: No fee" in out
    assert "not met: failures.back <= 0: found 1" in err


def test_what_cannot_be_done_is_said(stored, cli):
    stored(failing(["forgot it"]))
    for words, error in (
        (["--status", "x=fixed"], "no issue is called 'x'"),
        (["--status", "fixed"], "--status fixed: expected ISSUE=..., such as 3f2a9c01=fixed"),
        (["--scorer", "other"], "run 1 has no scores of other; judgekit score 1 --scorer other"),
        (["--since", "1"], "run 1 is the run itself; name an earlier one"),
        (["-o", "failures.txt"], "failures.txt: unsupported extension '.txt'; supported: .json, .md"),
    ):
        code, out, err = cli("failures", 1, *words)
        assert (code, out, error in err) == (2, "", True), err


def test_a_dry_run_tells_the_price_and_keeps_nothing(stored, cli):
    stored(failing(SYMPTOMS))
    code, out, _ = cli("failures", 1, "--judge", "openai/gpt-5-mini", "--dry-run")
    assert code == 0
    assert out.startswith("9 failures: 3 requests to group them, about ")
    assert not Path(".judgekit/failures").exists()


def test_what_cannot_be_asked_offline_is_told_and_cells_remain(stored, cli):
    stored(failing(SYMPTOMS))
    code, out, err = cli("failures", 1, "--judge", "openai/gpt-5-mini", "--offline")
    assert code == 0
    assert "missing_call at refund" in out
    assert "missing_call at refund: not grouped: " in err
