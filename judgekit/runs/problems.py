"""Problems with reading the files of a run."""

from collections.abc import Iterable

from judgekit.errors import TraceError, count_text, join_limited
from judgekit.runs.rows import Input

_SHOWN = 5


class ReadingProblems(list[TraceError]):
    """Problems with reading files. ``failed`` says whether whole files could not be read."""

    failed = False

    @property
    def unread_records(self) -> list[TraceError]:
        """The problems that concern single records."""
        return [problem for problem in self if problem.index is not None]

    def deduplicate(self) -> None:
        """Drop duplicates, and sort the others: whole files first, then records."""
        problems = {str(problem): problem for problem in self}.values()
        self[:] = sorted(problems, key=lambda error: (error.index is not None, str(error.path), error.index or 0))

    def merge(self, others: "ReadingProblems") -> None:
        """Add the problems of others that read the same files, without duplicates and sorted."""
        self.extend(others)
        self.deduplicate()
        self.failed = self.failed or others.failed

    def __str__(self) -> str:
        return join_limited(map(str, self), _SHOWN)

    def notes(self, inputs: Iterable[Input]) -> list[str]:
        """Return notes on these problems and on changed files for readers of the run, starting with the records."""
        notes = unread_notes(len(self.unread_records)) if self else []
        notes += ["files, or columns of them, could not be read"] if self.failed else []
        return notes + [f"{file.path} changed while it was being read" for file in inputs if file.is_changed]

    def check_any_read(self, scores: int) -> None:
        """Check that something was read, if there was anything to read.

        Raises:
            TraceError: There are no scores, but there are records that could not be read.
        """
        if self.unread_records and not scores:
            raise TraceError(
                f"none of the {len(self.unread_records)} records could be read; first error: {self.unread_records[0]}"
            )


def unread_notes(count: int) -> list[str]:
    """Return the note on records that could not be read, if there are any."""
    return [f"{count_text(count, 'record')} could not be read"] if count else []
