"""The example of an audit: as a program, and as the commands that its first lines name."""

import ast
import shlex
import shutil
from pathlib import Path

GOAL = "agent_goal_accuracy_without_reference"


def told(out: str) -> str:
    return " ".join(out.split())


def test_the_program_shows_a_lenient_judge_and_a_gate_that_is_not_met_for_it(forked, examples, tmp_path):
    command = forked("python", examples / "audit.py")
    out, err = command.communicate()
    assert (command.returncode, err) == (0, "")
    out = told(out)  # of 14 conversations the judge passes 9; the person not two of these, and no other
    assert "not audited audit of run 1" in out
    assert "judge's mean (raw) 0.643 0.388 to 0.837" in out
    assert "corrected mean (labels alone) 0.500 0.268 to 0.732" in out  # 7 of 14, by Wilson
    assert "kappa .71 [" in out  # (12/14 - 1/2) / (1 - 1/2) = 5/7
    assert "audited less than a day ago on run 1: kappa .71" in out
    assert f" met: {GOAL} >= 0.6" in out
    # By hand, it is (9/14 + 5/7 - 1) / (1 + 5/7 - 1).
    assert f" met: {GOAL}.corrected >= 0.4: found 0.5 (Rogan-Gladen; assumes: the judge errs here as often as" in out
    assert f"not met: {GOAL}.corrected.lower >= 0.4" in out
    page = (tmp_path / "sheet.html").read_text(encoding="utf-8")
    assert "goals achieved" not in page  # the judge's words
    assert len(list((tmp_path / ".judgekit" / "audits").iterdir())) == 1


def test_the_commands_come_to_the_same(cli, examples):
    for name in ("conversations.jsonl", "replies.jsonl", "labels.csv", "judgekit.toml"):
        shutil.copy(examples / name, Path.cwd())
    text = ast.get_docstring(ast.parse((examples / "audit.py").read_text(encoding="utf-8")))
    commands = [
        shlex.split(line) for line in text.replace("\\\n", " ").splitlines() if line.startswith("    judgekit ")
    ]
    assert [command[1] for command in commands] == ["run", "label", "audit", "run"]
    run, label, audit, again = (cli(*command[1:]) for command in commands)
    assert [run.code, label.code, audit.code, again.code] == [0, 0, 0, 1]
    assert "not audited" in run.out
    assert "10 of 14, drawn at random" in told(label.out)
    assert "corrected mean (labels alone) 0.500 0.268 to 0.732" in told(audit.out)
    assert "audited less than a day ago: kappa .71" in told(again.out)
    assert f"\nnot met: {GOAL}.corrected.lower >= 0.4: found 0.268 (labels alone)" in again.err  # the very same files
