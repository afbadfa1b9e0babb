"""Files of sub-agents, read with the session that started them."""

import gzip
import json
import shutil
from pathlib import Path

import pytest

from judgekit import ToolConstraints, run
from judgekit.behavior import MaxToolCalls
from judgekit.constraints import Forbid
from judgekit.errors import ConfigError, TraceError
from judgekit.formats import session_files as module
from judgekit.formats.reading import Recordings, read
from judgekit.formats.session_files import SessionFiles, input_paths, require_separate_output, session_files
from judgekit.jobs.options import RunOptions

ONE, TWO = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"


def row(kind: str, uuid: str, parent: str | None, session: str, content: object, **fields: object) -> dict:
    message = {"role": kind, "content": content, **({"id": f"m{uuid}"} if kind == "assistant" else {})}
    return {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": session, "message": message, **fields}


def call(identity: str, name: str, **arguments: object) -> list:
    return [{"type": "tool_use", "id": identity, "name": name, "input": arguments}]


def session(name: str, agent: str | None = "abc") -> list[dict]:
    """A session that starts a sub-agent."""
    result = [{"type": "tool_result", "tool_use_id": "c1", "content": "One file."}]
    return [
        row("user", "u1", None, name, f"go {name}"),
        row("assistant", "a1", "u1", name, call("c1", "Task", prompt="look", subagent_type="Explore")),
        row("user", "r1", "a1", name, result, toolUseResult={"agentId": agent} if agent else {}),
        row("assistant", "a2", "r1", name, [{"type": "text", "text": "done"}]),
    ]


def sub_agent(name: str, agent: str = "abc", tool: str = "Glob") -> list[dict]:
    about = {"isSidechain": True, "agentId": agent}
    return [
        row("user", f"{agent}1", None, name, "look", **about),
        row("assistant", f"{agent}2", f"{agent}1", name, call(f"{agent}c", tool), **about),
    ]


def put(path: Path, rows: list) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


@pytest.fixture
def project(tmp_path) -> Path:
    """A project with two sessions, each with a sub-agent."""
    for name in (ONE, TWO):
        put(tmp_path / f"{name}.jsonl", session(name))
        put(tmp_path / name / "subagents" / "agent-abc.jsonl", sub_agent(name))
    return tmp_path


def calls(path: Path | str) -> dict[str, list[str]]:
    """The tools that were called in each conversation, by all agents."""
    return {
        sample.id: [call.call.name for call in sample.trace.tool_calls()] for sample in read(path, on_error="raise")
    }


def problems(path: Path | str) -> tuple[list, list[str]]:
    found: list[TraceError] = []
    return list(read(path, on_error=found.append)), [str(problem) for problem in found]


def test_a_folder_holds_a_conversation_of_each_session(project):
    assert calls(project) == {ONE: ["Task", "Glob"], TWO: ["Task", "Glob"]}
    assert set(Recordings(project).formats) == set()
    recordings = Recordings(project)
    assert len(list(recordings.samples("raise"))) == 2
    assert set(recordings.formats) == {project / f"{ONE}.jsonl", project / f"{TWO}.jsonl"}


def test_a_file_or_a_pattern_finds_the_sub_agents_beside_it(project):
    assert calls(project / f"{ONE}.jsonl") == {ONE: ["Task", "Glob"]}
    assert calls(str(project / "*.jsonl")) == {ONE: ["Task", "Glob"], TWO: ["Task", "Glob"]}
    assert calls(str(project / "**" / "*.jsonl")) == {ONE: ["Task", "Glob"], TWO: ["Task", "Glob"]}


def test_a_path_relative_to_the_working_directory_finds_them_too(project, monkeypatch):
    monkeypatch.chdir(project)
    assert calls(f"{ONE}.jsonl") == calls(f"./{ONE}.jsonl") == {ONE: ["Task", "Glob"]}
    assert calls(".") == {ONE: ["Task", "Glob"], TWO: ["Task", "Glob"]}


def test_the_file_of_a_sub_agent_alone_is_a_conversation(project):
    agent = project / ONE / "subagents" / "agent-abc.jsonl"
    assert calls(agent) == {f"{ONE}#abc": ["Glob"]}
    (project / f"{ONE}.jsonl").unlink()
    assert calls(project) == {f"{ONE}#abc": ["Glob"], TWO: ["Task", "Glob"]}


def test_a_renamed_or_compressed_session_keeps_its_sub_agents(tmp_path):
    put(tmp_path / "run 1.jsonl.gz", session(ONE))
    put(tmp_path / "run 1" / "subagents" / "agent-abc.jsonl.gz", sub_agent(ONE))
    assert calls(tmp_path) == calls(tmp_path / "run 1.jsonl.gz") == {ONE: ["Task", "Glob"]}


def test_deeper_folders_and_metadata_belong_to_the_session(tmp_path):
    path = put(tmp_path / f"{ONE}.jsonl", session(ONE, agent=None))
    folder = tmp_path / ONE / "subagents" / "workflows" / "wf_1"
    put(
        folder / "agent-abc.jsonl",
        [{**sub_agent(ONE)[0], "message": {"role": "user", "content": "?"}}, *sub_agent(ONE)[1:]],
    )
    (folder / "agent-abc.meta.json").write_text('{\n  "toolUseId": "c1",\n  "agentType": "Plan"\n}')
    for given in (tmp_path, path):
        [sample] = read(given, on_error="raise")
        assert [child.metadata for child in sample.trace.children] == [{"call_id": "c1", "agent": "Plan"}]


def test_earlier_versions_wrote_sub_agents_beside_the_sessions(tmp_path):
    for name, agent in ((ONE, "a1"), (TWO, "a2")):
        put(tmp_path / f"{name}.jsonl", session(name, agent))
        put(tmp_path / f"agent-{agent}.jsonl", sub_agent(name, agent))
    put(tmp_path / "agent-a3.jsonl", sub_agent("33333333-1111-4111-8111-111111111111", "a3"))
    assert calls(tmp_path / f"{ONE}.jsonl") == {ONE: ["Task", "Glob"]}
    assert calls(tmp_path) == {
        ONE: ["Task", "Glob"],
        TWO: ["Task", "Glob"],
        "33333333-1111-4111-8111-111111111111#a3": ["Glob"],
    }


def test_what_is_forbidden_is_forbidden_to_sub_agents(project):
    [sample] = read(project / f"{ONE}.jsonl")
    forbidden = ToolConstraints([Forbid("Glob")]).score(sample)
    assert (forbidden.value, forbidden.reason) == (0, "0 of 1 constraints hold; forbid(Glob): Glob in message 2.1.2")
    assert ToolConstraints([Forbid("Glob")], scope="own").score(sample).warnings == (
        'scope = "own": 1 sub-agent with 1 tool call not looked at',
    )


def test_scores_say_that_sub_agents_were_not_read(project):
    shutil.rmtree(project / ONE)
    [sample] = read(project / f"{ONE}.jsonl")
    for scope in ("own", "tree"):
        score = ToolConstraints([Forbid("Glob")], scope=scope).score(sample)
        assert score.warnings == ("not looked at: sub-agents whose conversations are not in the recording",)
    [warning] = sample.trace.warnings
    assert warning.message.endswith(", found 1: abc")


@pytest.mark.parametrize("whole", [True, False], ids=["folder", "file"])
def test_a_damaged_file_of_a_sub_agent_is_told_and_the_rest_is_read(project, whole):
    agent = project / ONE / "subagents" / "agent-abc.jsonl"
    agent.write_text(agent.read_text() + "{broken\n")
    put(project / ONE / "subagents" / "agent-b.jsonl.gz", sub_agent(ONE, "b")).write_bytes(b"\x1f\x8bbroken")
    samples, told = problems(project if whole else project / f"{ONE}.jsonl")
    assert [call.call.name for call in samples[0].trace.tool_calls()] == ["Task", "Glob"]
    assert len(told) == 2
    assert told[0].startswith(f"{agent} (line 3): not JSON")
    assert told[1].startswith(f"{agent.with_name('agent-b.jsonl.gz')}, record 0: cannot be read")
    assert [warning.message.partition(": ")[0] for warning in samples[0].trace.warnings] == [
        "files of sub-agents that cannot be read, found agent-abc.jsonl",
        "files of sub-agents that cannot be read, found agent-b.jsonl.gz",
    ]
    with pytest.raises(TraceError, match=r"agent-abc\.jsonl"):
        list(read(project, on_error="raise"))


def test_links_that_lead_out_of_the_folder_are_not_followed(project, tmp_path_factory):
    outside = put(tmp_path_factory.mktemp("outside") / "agent-x.jsonl", sub_agent(ONE, "x", tool="Secret"))
    folder = project / ONE / "subagents"
    (folder / "agent-x.jsonl").symlink_to(outside)
    (folder / "more").symlink_to(outside.parent)
    (folder / "loop").symlink_to(folder)
    assert calls(project / f"{ONE}.jsonl") == {ONE: ["Task", "Glob"]}


def test_the_number_of_sub_agents_and_their_size_are_bounded(project, monkeypatch):
    folder = project / ONE / "subagents"
    for number in range(5):
        put(folder / f"agent-b{number}.jsonl", sub_agent(ONE, f"b{number}"))
    monkeypatch.setattr(module, "MOST_SUB_AGENTS", 3)
    samples, told = problems(project / f"{ONE}.jsonl")
    assert len(samples[0].trace.children) == 3
    assert told == [f"{folder / 'agent-b2.jsonl'}, record 0: not read, with 2 more: a session may have 3 sub-agents"]
    monkeypatch.setattr(module, "MAX_BYTES", 100)
    samples, [told] = problems(project / f"{ONE}.jsonl")
    assert samples[0].trace.children == ()
    assert told.endswith("agent-abc.jsonl, record 0: not read to its end: sub-agents of a session may have 0 MB")


def test_other_recordings_with_such_names_are_read_on_their_own(tmp_path):
    rows = [{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes"}]}]
    for name in ("chat.jsonl", "chat/subagents/agent-1.jsonl", "chat/subagents/agent-2.jsonl"):
        put(tmp_path / name, rows)
    samples, told = problems(tmp_path)
    assert [Path(sample.trace.source.path).name for sample in samples] == [
        "chat.jsonl",
        "agent-1.jsonl",
        "agent-2.jsonl",
    ]
    assert len(list(read(tmp_path / "chat.jsonl"))) == 1
    assert told == []


def test_a_changed_file_of_a_sub_agent_is_a_changed_input(project):
    """A run is not resumed as if nothing had changed."""
    path, agent = project / f"{ONE}.jsonl", project / ONE / "subagents" / "agent-abc.jsonl"
    assert input_paths(path) == [path, agent]
    before = {file.path: file.sha256 for file in RunOptions(file=str(path)).input_files()}
    assert list(before) == [str(path), str(agent)]
    put(agent, sub_agent(ONE, tool="Bash"))
    after = {file.path: file.sha256 for file in RunOptions(file=str(path)).input_files()}
    assert [name for name in before if before[name] != after[name]] == [str(agent)]


def test_no_output_replaces_the_file_of_a_sub_agent(project):
    agent = project / ONE / "subagents" / "agent-abc.jsonl"
    with pytest.raises(ConfigError, match="is an input file"):
        require_separate_output(agent, project / f"{ONE}.jsonl")


@pytest.mark.parametrize("workers", [None, 2])
def test_runs_score_sub_agents_with_their_sessions(project, tmp_path_factory, workers):
    folder = tmp_path_factory.mktemp("runs")
    (folder / "judgekit.toml").write_text('[[scorers]]\nname = "max_tool_calls"\nbudget = 5\nscope = "tree"\n')
    done = run(project, config=folder / "judgekit.toml", store=folder / "runs.sqlite", workers=workers)
    assert sorted((row.sample_id, row.score.details["number"]) for row in done.rows()) == [(ONE, 2), (TWO, 2)]
    assert len(done.record.inputs) == 4


def test_shards_count_sessions(project):
    assert [session.path.stem for session in session_files(project)] == [ONE, TWO]
    parts = [run(project, [MaxToolCalls(5)], shard=f"{part}/2", run_id="r").rows() for part in (1, 2)]
    assert sorted(row.sample_id for rows in parts for row in rows) == [ONE, TWO]


def test_objects_of_a_bucket_are_found_alike(project, bucket):
    for path in sorted(project.rglob("*.jsonl")):
        bucket.put(str(path.relative_to(project)), path.read_bytes())
    assert calls("s3://bucket/") == {ONE: ["Task", "Glob"], TWO: ["Task", "Glob"]}
    assert calls(f"s3://bucket/{ONE}.jsonl") == {ONE: ["Task", "Glob"]}
    assert calls("s3://bucket/*.jsonl") == {ONE: ["Task", "Glob"], TWO: ["Task", "Glob"]}


def test_a_bucket_that_cannot_be_listed_is_told(project, bucket, monkeypatch):
    bucket.put(f"{ONE}.jsonl", (project / f"{ONE}.jsonl").read_bytes())

    def refuse(self):
        raise PermissionError("access denied")

    monkeypatch.setattr("judgekit.locations.Url.objects", refuse)
    [sample], [told] = problems(f"s3://bucket/{ONE}.jsonl")
    assert told.endswith(f"{ONE}.jsonl: the files of sub-agents next to it cannot be listed: access denied")
    assert [warning.path for warning in sample.trace.warnings] == ["children"]


def test_files_without_sub_agents_stand_alone(tmp_path):
    path = put(tmp_path / "chat.jsonl", [{"messages": []}])
    assert session_files(path) == [SessionFiles(path)]
