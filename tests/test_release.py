"""What is published: one version everywhere, Pythons that CI runs, workflows and actions that are pinned."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import judgekit

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FILES = [*WORKFLOWS, ROOT / "action.yml"]


def test_the_version_is_the_same_in_the_package_the_metadata_and_the_changelog():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    cut = re.findall(r"^## (\d+\.\d+\.\d+) - \d{4}-\d{2}-\d{2}$", changelog, re.MULTILINE)
    assert PROJECT["version"] == judgekit.__version__ == cut[0]


def test_ci_runs_the_first_and_the_last_python_that_the_classifiers_name():
    named = [one.rpartition(" ")[2] for one in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", one)]
    jobs = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values() for path in WORKFLOWS}
    installed = {
        name: {version for job in jobs[name] for step in job.get("steps", ()) if "setup-python" in step.get("uses", "")
               for version in step["with"]["python-version"].split()}
        for name in jobs
    }  # fmt: skip
    assert installed == {"ci": {named[0], named[-1]}, "release": {named[0]}}
    images = re.findall(r"^FROM python:([\d.]+)-slim", (ROOT / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE)
    assert {*images} == {named[0]}
    assert PROJECT["requires-python"] == f">={named[0]}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_actions_of_others_are_pinned_by_commit_with_their_version_beside(path):
    for used, version in re.findall(r"uses: (\S+)(?: # (\S+))?", path.read_text(encoding="utf-8")):
        local = used.startswith("./")
        assert local or (re.search(r"@[0-9a-f]{40}$", used) and re.fullmatch(r"v[\d.]+", version)), used


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_hold_no_secret_and_no_expression_in_a_script(path):
    text = path.read_text(encoding="utf-8")
    workflow = yaml.safe_load(text)
    assert "secrets." not in text
    assert workflow["permissions"] == {}
    scripts = [step.get("run", "") for job in workflow["jobs"].values() for step in job.get("steps", ())]
    assert not [script for script in scripts if "${{" in script]


def test_only_the_job_that_publishes_may_ask_for_an_identity():
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8"))["jobs"]
    assert {name for name, job in jobs.items() if "id-token" in job["permissions"]} == {"publish"}
    assert (jobs["publish"]["environment"], jobs["publish"]["needs"], jobs["build"]["needs"]) == (
        "release",
        "build",
        "ci",
    )
    assert not [
        step for step in jobs["publish"]["steps"] if "run" in step
    ]  # nothing of the checkout runs beside the identity
