"""The GitHub Action: its scripts run in a shell as on a runner, with a judgekit that is installed already."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parent.parent
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS = ACTION["runs"]["steps"]

HOSTILE = ("""$(touch hacked) `touch hacked` "; touch hacked; '; touch hacked; " || touch hacked""", "--version")

# Stands in for the Python of the runner: makes an environment whose pip writes down what it should install.
PYTHON = """#!/bin/bash
[ "$1 $2 $3" = "-I -m venv" ] || exit 9
mkdir -p "$4/bin"
printf '#!/bin/bash\\nprintf "%%s\\\\n" "$@" >"$RUNNER_TEMP/installed.txt"\\n' >"$4/bin/pip"
printf '#!/bin/bash\\nexec "$TEST_PYTHON" "$@"\\n' >"$4/bin/python"
printf '#!/bin/bash\\nexec "$TEST_JUDGEKIT" "$@"\\n' >"$4/bin/judgekit"
chmod +x "$4"/bin/*
"""


@dataclass(frozen=True)
class Ended:
    """How the scripts of the action ended."""

    code: int
    out: str
    outputs: Mapping[str, str]
    summary: str
    temp: Path

    @property
    def report(self) -> Path:
        return Path(self.outputs["report"])


@pytest.fixture
def action(tmp_path, examples, programs) -> Callable[..., Ended]:
    """Runs the action's scripts one after the other in a checkout with the example conversations, until one fails."""
    checkout, temp, runner = (tmp_path / name for name in ("checkout", "temp", "runner"))
    for folder in (checkout, temp, runner):
        folder.mkdir()
    shutil.copy(examples / "conversations.jsonl", checkout)
    (runner / "python").write_text(PYTHON)
    (runner / "python").chmod(0o755)

    def run(**given: str) -> Ended:
        inputs = {name: str(one.get("default", "")) for name, one in ACTION["inputs"].items()} | given
        common = {
            "PATH": f"{runner}:/usr/bin:/bin",
            "TEST_PYTHON": sys.executable,
            "TEST_JUDGEKIT": str(programs / "judgekit"),
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
            "PYTHONUTF8": "1",
            "GITHUB_ACTION_PATH": "/actions/judgekit",
            "GITHUB_OUTPUT": str(temp / "output"),
            "GITHUB_STEP_SUMMARY": str(temp / "summary"),
            "RUNNER_TEMP": str(temp),
        }
        code, out = 0, ""
        for step in STEPS:
            if "run" not in step or code:
                continue
            values = {
                name: re.sub(r"^\$\{\{ inputs\.([\w-]+) \}\}$", lambda found: inputs[found[1]], text)
                for name, text in step["env"].items()
            }
            script = temp / "script.sh"
            script.write_text(step["run"])
            done = subprocess.run(  # noqa: S603 - our own scripts
                ["/bin/bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
                cwd=checkout,
                env=common | values,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            code, out = done.returncode, out + done.stdout + done.stderr
        lines = (temp / "output").read_text().splitlines() if (temp / "output").exists() else []
        summary = (temp / "summary").read_text() if (temp / "summary").exists() else ""
        assert not list(tmp_path.rglob("hacked*"))
        return Ended(code, out, dict(line.split("=", 1) for line in lines), summary, temp)

    return run


def test_a_gate_that_is_met_ends_with_0_and_a_report(action):
    ended = action(
        files="conversations.jsonl", scorers="tool_call_f1\ntool_call_accuracy\n", gates="tool_call_f1 >= 0.9"
    )
    assert (ended.code, ended.outputs["exit-code"]) == (0, "0"), ended.out
    assert {one.name for one in ended.report.iterdir()} == {"report.html", "summary.md"}
    assert "tool_call_accuracy" in (ended.report / "report.html").read_text()
    assert "tool_call_f1 >= 0.9" in (ended.report / "summary.md").read_text()
    assert "tool_call_f1 >= 0.9" in ended.summary  # on the page of the job


def test_a_gate_that_is_not_met_ends_with_1_and_the_report_is_still_there(action):
    ended = action(
        files="conversations.jsonl", scorers="tool_call_f1", gates="failed <= 1%\n\n  tool_call_f1.min >= 0.9  "
    )
    assert (ended.code, ended.outputs["exit-code"]) == (1, "1")
    assert "not met: tool_call_f1.min >= 0.9" in ended.out
    assert "not met" in (ended.report / "summary.md").read_text()
    assert (ended.report / "report.html").stat().st_size > 10_000


def test_nothing_that_could_be_run_ends_with_2(action):
    ended = action(files="no_such_file.jsonl", scorers="tool_call_f1")
    assert (ended.code, ended.outputs["exit-code"]) == (2, "2")
    assert not list(ended.report.iterdir())


def test_config_judge_and_further_arguments_reach_judgekit(action, tmp_path):
    (tmp_path / "checkout" / "gates of ours.toml").write_text('[[scorers]]\nname = "tool_call_f1"\nas = "calls"\n')
    ended = action(files="*.jsonl", config="gates of ours.toml", judge="openai/x", args="--limit=3\n--show\n1")
    assert ended.code == 0, ended.out
    assert re.search(r"^ calls .* 3 of 3 ", ended.out, re.MULTILINE)
    assert "3 of 3" in (ended.report / "summary.md").read_text()


@pytest.mark.parametrize("name", ["files", "scorers", "gates", "judge", "config", "args"])
@pytest.mark.parametrize("text", HOSTILE)
def test_no_input_runs_as_a_command(action, name, text):
    ended = action(**{"files": "conversations.jsonl", "scorers": "tool_call_f1", name: text})
    assert ended.code == 2, ended.out


def test_the_runner_obeys_no_command_in_what_judgekit_prints(action, tmp_path):
    """A recording may quote one: from the first line on, only a random token ends the time in which none is obeyed."""
    row = '{"id": "a", "input": "Hi", "response": "x\\n::error::gotcha\\n", "reference": "y"}\n'
    (tmp_path / "checkout" / "rows.jsonl").write_text(row)
    ended = action(files="rows.jsonl", scorers="exact_match", args="--show=1")
    begin, end = re.findall(r"^::(?:stop-commands::)?([0-9a-f]{32})(?:::)?$", ended.out, re.MULTILINE)
    assert begin == end
    before, _, after = ended.out.partition(f"::stop-commands::{begin}\n")
    assert "::" not in before
    assert "gotcha" in after.partition(f"\n::{end}::\n")[0]


@pytest.mark.parametrize(
    ("extras", "installed"),
    [("", "/actions/judgekit"), ("litellm", "/actions/judgekit[litellm]"), ("a, b-c", "/actions/judgekit[a,b-c]")],
)
def test_the_judgekit_of_the_actions_own_version_is_installed(action, extras, installed):
    ended = action(files="conversations.jsonl", scorers="tool_call_f1", extras=extras)
    assert (ended.temp / "installed.txt").read_text().splitlines()[-1] == installed


@pytest.mark.parametrize("extras", ["x] @ https://example.com/y.whl", "$(touch hacked)", "a;b", "a\nb"])
def test_extras_that_are_no_names_install_nothing(action, extras):
    ended = action(files="conversations.jsonl", scorers="tool_call_f1", extras=extras)
    assert (ended.code, ended.outputs) == (2, {})
    assert not (ended.temp / "installed.txt").exists()


def test_no_script_holds_an_expression_and_the_report_is_uploaded_whatever_the_exit_code():
    assert not [step["name"] for step in STEPS if "${{" in step.get("run", "")]
    assert "!cancelled()" in STEPS[-1]["if"]
    assert STEPS[-1]["uses"].startswith("actions/upload-artifact@")
