"""The Kubernetes manifests of the docs: their fields are those that Kubernetes and KubeRay know, and their commands run."""

import copy
import os
import shlex
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from judgekit.cli.run import run

KUBERNETES = "1.37"
EXAMPLES = Path(__file__).parents[1] / "examples"
TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
GROUP = {"rayStartParams": TEXTS, "template": {"type": "object"}}


def closed(required: list[str], **properties: object) -> dict[str, object]:
    return {"type": "object", "required": required, "additionalProperties": False, "properties": properties}


COUNT = {"type": "integer", "minimum": 0}
RAY_JOB = closed(
    ["apiVersion", "kind", "metadata", "spec"],
    apiVersion={"const": "ray.io/v1"},
    kind={"const": "RayJob"},
    metadata=closed(["name"], name={"type": "string", "pattern": "^[a-z]([-a-z0-9]*[a-z0-9])?$"}),
    spec=closed(
        ["rayClusterSpec"],
        entrypoint={"type": "string"},
        shutdownAfterJobFinishes={"type": "boolean"},
        rayClusterSpec=closed(
            ["headGroupSpec"],
            headGroupSpec=closed(["rayStartParams", "template"], **GROUP),
            workerGroupSpecs={
                "type": "array",
                "items": closed(
                    ["groupName", "rayStartParams", "template"],
                    groupName={"type": "string"},
                    replicas=COUNT,
                    minReplicas=COUNT,
                    maxReplicas=COUNT,
                    **GROUP,
                ),
            },
        ),
    ),
)
"""What is used of RayJob, as KubeRay's Go types have it (ray-operator/apis/ray/v1): no package has its schema."""


def manifests() -> Iterator[tuple[str, Any]]:
    for path in sorted(EXAMPLES.glob("*.yaml")):
        yield path.name, yaml.safe_load(path.read_text(encoding="utf-8"))


MANIFESTS = dict(manifests())


def check(manifest: Any) -> None:
    """Check the fields of a manifest. Unknown ones are errors."""
    if manifest["kind"] != "RayJob":
        kubernetes_validate.validate(manifest, KUBERNETES, strict=True)
        return
    jsonschema.validate(manifest, RAY_JOB)
    cluster = manifest["spec"]["rayClusterSpec"]
    for group in [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]:
        template = {"metadata": {"name": "template"}, "template": group["template"]}
        kubernetes_validate.validate({"apiVersion": "v1", "kind": "PodTemplate", **template}, KUBERNETES, strict=True)
        containers = group["template"]["spec"]["containers"]
        assert containers[0]["name"].startswith("ray-")  # Ray runs in the first


def test_the_examples_have_an_indexed_job_and_a_ray_job():
    assert {name: content["kind"] for name, content in MANIFESTS.items()} == {
        "job.yaml": "Job",
        "rayjob.yaml": "RayJob",
    }


@pytest.mark.parametrize("name", MANIFESTS)
def test_each_field_is_one_that_kubernetes_or_kuberay_knows(name):
    check(MANIFESTS[name])


def pods(manifest: Any) -> Iterator[Any]:
    """The pods of a manifest."""
    spec = manifest["spec"]
    cluster = spec.get("rayClusterSpec")
    groups = [spec] if cluster is None else [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    return (group["template"]["spec"] for group in groups)


MISTAKES: dict[str, Callable[[Any], object]] = {
    "a field of a pod": lambda one: [pod.update(restartpolicy="Never") for pod in pods(one)],
    "a field of a container": lambda one: [pod["containers"][0].update(envfrom=[]) for pod in pods(one)],
    "a field of the spec": lambda one: one["spec"].update(completion=3),
    "a type": lambda one: [pod["containers"][0].update(image=3) for pod in pods(one)],
    "a missing field": lambda one: [pod.pop("containers") for pod in pods(one)],
}


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("name", MANIFESTS)
def test_mistakes_are_found(name, mistake):
    wrong = copy.deepcopy(MANIFESTS[name])
    MISTAKES[mistake](wrong)
    with pytest.raises((kubernetes_validate.ValidationError, jsonschema.ValidationError)):
        check(wrong)


@pytest.mark.parametrize("name", MANIFESTS)
def test_what_is_mounted_is_a_volume_and_all_pods_have_the_keys_of_judges(name):
    """The process that starts a run checks that it has them, too."""
    for pod in pods(MANIFESTS[name]):
        volumes = [one["name"] for one in pod["volumes"]]
        for container in pod["containers"]:
            assert [one["name"] for one in container["volumeMounts"]] == volumes
            assert container["envFrom"] == [{"secretRef": {"name": "judge-keys"}}]


def words_of(command: str, **environment: str) -> list[str]:
    """The words that the command line gets from a shell."""
    script = f'judgekit() {{ printf "%s\\n" "$@"; }}\n{command}'
    done = subprocess.run(["/bin/sh", "-c", script], env=os.environ | environment, capture_output=True, check=True, text=True)  # noqa: S603 # fmt: skip
    return done.stdout.splitlines()


def options_of(words: list[str]) -> dict[str, str]:
    """The options of ``judgekit run`` with their values."""
    assert words[:2] == ["run", "/data/conversations.jsonl"]
    return dict(zip(words[2::2], words[3::2], strict=True))


KNOWN = {f"--{name.replace('_', '-')}" for name in run.__annotations__}


def test_the_shards_of_the_indexed_job_are_all_shards_of_one_run():
    spec = MANIFESTS["job.yaml"]["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    assert container["command"] == ["sh", "-c"]
    (command,) = container["args"]
    found = [options_of(words_of(command, JOB_COMPLETION_INDEX=str(index))) for index in range(spec["completions"])]
    assert [one["--shard"] for one in found] == [f"{index + 1}/16" for index in range(16)]
    assert len({one["--store"] for one in found}) == 16
    assert {one["--run-id"] for one in found} == {"nightly-7"}
    assert found[0].keys() <= KNOWN
    assert spec["completionMode"] == "Indexed"


def test_the_ray_job_runs_a_command_whose_files_are_on_the_volume():
    entrypoint = MANIFESTS["rayjob.yaml"]["spec"]["entrypoint"]
    words = words_of(entrypoint)
    assert words == shlex.split(entrypoint)[1:]
    found = options_of(words)
    assert found.keys() <= KNOWN
    assert found["--engine"] == "ray"
    assert all(found[name].startswith("/data/") for name in ("--config", "--store"))
