"""Files of coding agents that belong together: a session, and the sub-agents that it started.

Claude Code writes ``<session>/subagents/**/agent-<id>.jsonl`` next to ``<session>.jsonl`` (before, ``agent-<id>.jsonl``),
with ``agent-<id>.meta.json``. Codex writes all sessions as ``rollout-<time>-<id>.jsonl``, which name their parents.
"""

import glob
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeGuard

from pydantic import JsonValue

from judgekit.errors import ConfigError, TraceError
from judgekit.formats.compression import MAX_BYTES
from judgekit.formats.file_lists import STANDARD_STREAM, list_files
from judgekit.formats.files import File, parse_json
from judgekit.formats.values import lookup, str_or_none
from judgekit.locations import Location, Url, to_location
from judgekit.traces.message import JsonObject

SUB_AGENT_FILE = "sub_agent_file"
"""The field of a record that holds the file of a sub-agent: its name, ``rows``, ``meta`` and a ``problem``."""
SESSION_FORMATS = ("claude-code", "codex")
"""The formats whose readers take such records."""
MOST_SUB_AGENTS = 1_000
"""The most files of sub-agents that are read with a session."""

_FOLDER = "subagents"
_AGENT = re.compile(r"agent-(.+?)(?:\.jsonl(?:\.gz|\.zst)?|\.meta\.json)")
_ROLLOUT = re.compile(r"rollout-.+\.jsonl(?:\.gz|\.zst)?")
_SUB_AGENT = re.compile(f"{_AGENT.pattern}|{_ROLLOUT.pattern}")
_SESSION = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SUFFIXES = re.compile(r"(?:\.jsonl|\.ndjson|\.json|\.txt|\.log)?(?:\.gz|\.zst)?$")
_META = ".meta.json"
_HEAD_BYTES = 1 << 22
"""The most bytes of a first row."""


class SessionFiles(NamedTuple):
    """A file, and the files of the sub-agents that it started.

    If the file were no session, those that are ``listed`` would be read on their own. Others may be missing due to a
    ``problem``.
    """

    path: Location
    sub_agents: Sequence[Location] = ()
    listed: Sequence[Location] = ()
    problem: str | None = None


def session_files(path: Path | str) -> list[SessionFiles]:
    """Return the files to read, as `list_files` finds them, those of sub-agents with the sessions that started them.

    For files that are named one by one or by a pattern, the files of sub-agents are looked for where coding agents write
    them.
    """
    path = to_location(path)
    paths = list_files(path)
    problems: dict[Location, str] = {}
    candidates: dict[Location, None] = dict.fromkeys(paths)
    if paths == [path] or glob.has_magic(str(path)):
        candidates |= dict.fromkeys(_around(paths, problems))
    named = [file for file in candidates if _SUB_AGENT.fullmatch(file.name)]
    owners = {**_owners_by_name(paths, named), **_owners_by_parent(paths, named)} if named else {}
    owned: dict[Location, list[Location]] = defaultdict(list)
    for file in sorted(owners, key=str):
        owned[owners[file]].append(file)
    listed = set(paths)
    return [
        SessionFiles(file, (*owned[file],), tuple(sub for sub in owned[file] if sub in listed), problems.get(file))
        for file in paths
        if file not in owners
    ]


def input_paths(path: Path | str) -> list[Location]:
    """Return all files that are read for a path, those of sub-agents too."""
    return [file for session in session_files(path) for file in (session.path, *session.sub_agents)]


def require_separate_output(output: Path | str, *read: Path | str | None) -> None:
    """Check that an output file is not one of the files that are read, even in folders."""
    output = to_location(output)
    files = (file for path in read if path is not None for file in input_paths(path))
    if output != STANDARD_STREAM and _identity(output) in map(_identity, files):
        raise ConfigError(f"--output {output}: is an input file; choose another")


def is_sub_agent_file(record: JsonValue) -> TypeGuard[JsonObject]:
    """Return whether a record holds the file of a sub-agent."""
    return isinstance(record, dict) and SUB_AGENT_FILE in record


def agent_of_file(name: str) -> str:
    """Return the id of the sub-agent in the name of a file."""
    match = _AGENT.fullmatch(name)
    return match[1] if match else name


def _around(paths: Sequence[Location], problems: dict[Location, str]) -> Iterator[Location]:
    """Yield the files near some sessions that may be of their sub-agents."""
    folders: set[Path] = set()
    for path in paths:
        stem = _stem(path)
        is_session = _SESSION.fullmatch(stem.rpartition("/")[2]) is not None
        if isinstance(path, Url):
            if is_session:
                try:
                    yield from Url(f"{stem}/{_FOLDER}/").objects()
                except OSError as error:
                    problems[path] = f"the files of sub-agents next to it cannot be listed: {error}"
            continue
        if (below := Path(stem, _FOLDER)).is_dir():
            yield from _inside(below)
        if is_session or _ROLLOUT.fullmatch(path.name):
            folders.add(path.parent)
    for folder in sorted(folders):
        yield from _inside(folder, is_recursive=False)


def _inside(folder: Path, *, is_recursive: bool = True) -> Iterator[Path]:
    """Yield the files in a folder that may be of sub-agents. Links that lead out of it are left out."""
    walked = os.walk(folder) if is_recursive else islice(os.walk(folder), 1)
    files = (Path(parent, name) for parent, _, names in walked for name in sorted(names))
    for file in islice(files, 20_000):
        if _SUB_AGENT.fullmatch(file.name) and file.is_file() and file.resolve().is_relative_to(folder.resolve()):
            yield file


def _owners_by_name(paths: Sequence[Location], candidates: Iterable[Location]) -> dict[Location, Location]:
    """Return the session of each sub-agent of Claude Code: its name, or that in the first row, is that of the file."""
    sessions = {_stem(path): path for path in paths if not _AGENT.fullmatch(path.name)}
    owners: dict[Location, Location] = {}
    for file in candidates if sessions else ():
        if not _AGENT.fullmatch(file.name):
            continue
        stem = _text(file).rpartition(f"/{_FOLDER}/")[0]
        if stem not in sessions and not file.name.endswith(_META):
            folder, slash, _ = _text(file).rpartition("/")
            stem = f"{folder}{slash}{lookup(_first_row(file), 'sessionId')}"
        if stem in sessions:
            owners[file] = sessions[stem]
    return owners


def _owners_by_parent(paths: Sequence[Location], candidates: Iterable[Location]) -> dict[Location, Location]:
    """Return the session of each sub-agent of Codex: the first of its ancestors that is among the files."""
    rollouts = [file for file in candidates if _ROLLOUT.fullmatch(file.name)]
    threads = {file: thread for file in rollouts if (thread := codex_thread(_first_row(file))) is not None}
    files = {thread.identity: file for file, thread in threads.items()}
    listed = set(paths)
    owners: dict[Location, Location] = {}
    for file, thread in threads.items():
        seen = {thread.identity}
        parent = thread.parent
        while parent is not None and parent not in seen and parent in files:
            seen.add(parent)
            if files[parent] in listed:
                owners[file] = files[parent]
            parent = threads[files[parent]].parent
    return owners


class CodexThread(NamedTuple):
    """A session of Codex: its id, and that of the session that started it as a sub-agent."""

    identity: str
    parent: str | None


def codex_thread(row: JsonValue) -> CodexThread | None:
    """Return the session that a header names, with its parent; ``None`` for any other row."""
    payload = lookup(row, "payload")
    identity = str_or_none(lookup(payload, "id"))
    if lookup(row, "type") != "session_meta" or identity is None:
        return None
    spawned_by = str_or_none(lookup(payload, "source", "subagent", "thread_spawn", "parent_thread_id"))
    return CodexThread(identity, spawned_by or str_or_none(lookup(payload, "parent_thread_id")) or None)


def sub_agent_records(session: SessionFiles, problems: list[TraceError]) -> Iterator[JsonValue]:
    """Yield a record for the file of each sub-agent of a session. Files that cannot be read are added to the problems."""
    metas = {agent_of_file(file.name): file for file in session.sub_agents if file.name.endswith(_META)}
    files = [file for file in session.sub_agents if not file.name.endswith(_META)]
    room = MAX_BYTES
    for number, file in enumerate(files):
        rows: list[JsonValue] = []
        errors: list[TraceError] = []
        try:
            if number == MOST_SUB_AGENTS:
                more = len(files) - number - 1
                raise TraceError(f"not read, with {more:,} more: a session may have {number:,} sub-agents")
            located = File.locate(file)
            for line in located.lines():
                room -= len(line.text)
                if room < 0:
                    raise TraceError(f"not read to its end: sub-agents of a session may have {MAX_BYTES >> 20:,} MB")
                row = located.parsed(line)
                if isinstance(row.value, TraceError):
                    errors.append(TraceError(row.value.problem, line=row.line_number))
                else:
                    rows.append(row.value)
        except TraceError as error:
            errors.append(error)
        problems += [TraceError(error.problem, path=file, index=0, line=error.line) for error in errors]
        sidecar = metas.get(agent_of_file(file.name))
        meta = None if sidecar is None else _parsed(_head(sidecar))
        problem = errors[0].problem if errors else None
        yield {SUB_AGENT_FILE: file.name, "rows": rows, "meta": meta, "problem": problem}
        if number == MOST_SUB_AGENTS or room < 0:
            return
    if session.problem is not None:
        problems.append(TraceError(session.problem, path=session.path))


def _first_row(path: Location) -> JsonValue:
    """Return the first row of a JSONL file; ``None`` if there is none that can be read."""
    return _parsed(_head(path).partition(b"\n")[0])


def _parsed(text: bytes) -> JsonValue:
    with suppress(ValueError):
        return parse_json(text)
    return None


def _head(path: Location) -> bytes:
    with suppress(TraceError), File.locate(path, "utf-8").open() as file:
        return file.read(_HEAD_BYTES) if path.name.endswith(_META) else file.readline(_HEAD_BYTES)
    return b""


def _stem(path: Location) -> str:
    """Return the path of a file without the suffixes of recordings."""
    return _SUFFIXES.sub("", _text(path), count=1)


def _text(path: Location) -> str:
    return path if isinstance(path, Url) else path.as_posix()


def _identity(location: Location) -> Location:
    return location if isinstance(location, Url) else location.resolve()
