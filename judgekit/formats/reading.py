"""Reading recorded conversations and dataset rows from files."""

import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from judgekit.errors import ConfigError, TraceError, check_choice
from judgekit.formats.columns import Columns
from judgekit.formats.conversations import Conversation, FileContent, find_conversations, joins_sub_agents
from judgekit.formats.exports import RepeatedHistories
from judgekit.formats.files import File
from judgekit.formats.readers import reader_named
from judgekit.formats.records import records_in
from judgekit.formats.references import ReferenceJoiner
from judgekit.formats.session_files import SessionFiles, session_files
from judgekit.formats.unread import warn_of_repeated_keys
from judgekit.locations import Location, to_location
from judgekit.shards import EVERYTHING, Shard
from judgekit.traces.ending import NoAnswer, assume_failure
from judgekit.traces.sample import Sample

OnError: TypeAlias = Literal["warn", "raise"] | Callable[[TraceError], object]
SampleFilter: TypeAlias = Callable[[int], bool]
"""A function that returns whether the sample with this number is to be made."""


def read(
    path: Path | str,
    format: str | None = None,
    references: Path | str | None = None,
    on_error: OnError = "warn",
    columns: Mapping[str, str] | None = None,
    encoding: str | None = None,
    no_answer: NoAnswer = "failed",
) -> Iterator[Sample]:
    """Yield recorded conversations or dataset rows.

    JSON Lines, tables and archives are streamed. A JSON document is held in memory as a whole, and so are the
    lines of a log whose lines belong together, such as spans and the sessions of coding agents.

    Args:
        path: A file or its URL (``s3://``, ``gs://``, ``az://``, ``abfs://``): a ``.jsonl``, ``.json``, ``.csv``, ``.tsv``, ``.parquet``, ``.arrow``, ``.eval`` or ``.traj`` file, also
            compressed (``.gz``, ``.zst``); ``.txt`` and ``.log`` if they hold JSON; a folder, in which all files with
            such suffixes are read; a pattern such as ``logs/**/*.json``; or ``-`` for standard input. Each of several
            files may have its own format; samples without an id are numbered over all files.
        format: A format that ``judgekit formats`` lists. The default is to detect it.
        references: A file with references for traces that have none, in any of these containers; see `ReferenceJoiner`.
        on_error: The reaction to a record that cannot be read, a truncated file, one of several files that cannot
            be read, and references that match no sample: a Python warning (the default), an error, or a call with
            the `TraceError`. Except with ``raise``, the rest is read.
        columns: New names of columns in the file or the file of references, by their old names:
            ``{"question": "input", "answer": "response"}``.
        encoding: The encoding of the file and the references, if they hold text. The default is UTF-8, or
            UTF-16 if the file begins with its byte order mark.
        no_answer: What scorers that look for an answer give a recording that stops after the user's message: a failed
            score (the default), or 0 (``"zero"``), as if the agent had failed there.

    Raises:
        TraceError: The file cannot be read, has an unknown format, or lacks the columns; or all of several files do.
        ConfigError: The format or encoding is unknown, or two columns get the same name.
    """
    return Recordings(path, format, references, columns, encoding, no_answer=no_answer).samples(on_error)


class Recordings:
    """Files that are read together; see `read`. With ``shard``, the samples of other shards are only counted.

    ``formats`` has the format of each file that could be read so far, and ``failed`` the errors of files that could not
    be read, or not to the end, and of columns in no file.
    """

    def __init__(
        self,
        path: Path | str,
        format: str | None = None,
        references: Path | str | None = None,
        columns: Mapping[str, str] | None = None,
        encoding: str | None = None,
        shard: Shard | None = None,
        no_answer: NoAnswer = "failed",
    ) -> None:
        self.formats: dict[Location, str] = {}
        self.failed: list[TraceError] = []
        self._shard = shard
        check_choice("no_answer", no_answer, get_args(NoAnswer))
        self._no_answer = no_answer
        self._encoding = encoding
        self._reader = None if format is None else reader_named(format)
        path = to_location(path)
        sessions = session_files(path)
        self._columns = Columns(columns or {}, has_more_files=len(sessions) > 1)
        is_single = [session.path for session in sessions] == [path]
        file = File.locate(sessions[0].path, encoding) if is_single else None
        self._joiner = None
        if references is not None:
            reference_file = File.locate(references, encoding)
            with closing(records_in(reference_file, self._columns, requires_columns=False)) as rows:
                self._joiner = ReferenceJoiner(reference_file.path, rows)
        self._notices = [] if self._joiner is None else self._joiner.notices
        if file is None:
            self._content = self._all_files(path, sessions)
        else:
            self.formats[file.path], content = find_conversations(file, self._reader, self._columns, sessions[0])
            self._content = self._single_file(content)

    def samples(self, on_error: OnError) -> Iterator[Sample]:
        """Return an iterator over the samples, which can be used once; see `read`."""
        return (sample for _, sample in self.numbered(on_error))

    def numbered(self, on_error: OnError, sample_filter: SampleFilter | None = None) -> Iterator[tuple[int, Sample]]:
        """Yield the samples with the numbers of their records, from 0. This works once.

        Samples that ``sample_filter`` rejects are skipped without being made, unless there are references to join.
        """
        joiner, histories = self._joiner, RepeatedHistories()
        number = -1
        with closing(self._content) as content:  # an error that is raised would keep the file open as long as it lives
            for conversation in chain(self._notices, content):
                if isinstance(conversation, TraceError):
                    _report(conversation, on_error)
                    continue
                number += 1
                is_wanted = sample_filter is None or sample_filter(number)
                is_elsewhere = self._shard is not None and number not in self._shard
                if is_elsewhere or not (is_wanted or joiner is not None):
                    continue
                sample = conversation(number)
                if isinstance(sample, TraceError):
                    _report(sample, on_error)
                    continue
                warn_of_repeated_keys(sample)
                histories.add(sample.trace)
                if joiner is not None:
                    sample = joiner.join(sample)
                if is_wanted:
                    yield number, assume_failure(sample) if self._no_answer == "zero" else sample
        misfits = joiner.misfits(all_samples=self._shard in (None, EVERYTHING)) if joiner else ()
        for problem in chain(histories.repeated(), misfits):
            _report(problem, on_error)

    def _single_file(self, content: FileContent) -> Generator[TraceError | Conversation]:
        """Yield the content of a single file. If the file breaks off, what was read before stays."""
        any_found = False
        try:
            for conversation in content:
                any_found = any_found or not isinstance(conversation, TraceError)
                yield conversation
        except TraceError as error:
            if not any_found:
                raise
            self.failed.append(error)
            yield error

    def _all_files(self, path: Location, sessions: Sequence[SessionFiles]) -> Generator[TraceError | Conversation]:
        waiting = deque(sessions)
        while waiting:
            session = waiting.popleft()
            try:
                file = File.locate(session.path, self._encoding)
                self.formats[file.path], content = find_conversations(file, self._reader, self._columns, session)
                if not joins_sub_agents(file, self.formats[file.path]):
                    waiting.extendleft(map(SessionFiles, reversed(session.listed)))
                yield from content
            except (TraceError, ConfigError) as error:
                problem = error if isinstance(error, TraceError) else TraceError(str(error), path=session.path)
                self.failed.append(problem)
                yield problem
        if not self.formats:
            raise TraceError(f"none of {len(sessions):,} files could be read; first error: {self.failed[0]}")
        try:
            self._columns.must_be_seen(path)
        except TraceError as error:
            self.failed.append(error)
            yield error


def _report(error: TraceError, on_error: OnError) -> None:
    if on_error == "raise":
        raise error
    if on_error == "warn":
        warnings.warn(str(error), stacklevel=4)
    else:
        on_error(error)
