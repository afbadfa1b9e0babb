"""All errors that judgekit raises on purpose.

JudgekitError
├── TraceError                a recording that cannot be read
├── PromptError               a prompt file that cannot be used
├── ConfigError               a judge, scorer or setting that does not exist or does not fit
├── StoreError                a file written by judgekit that cannot be used
├── WorkerError               workers that died or cannot start
├── ExportError               scores that another system refuses, or cannot be sent there
└── JudgeError                a question that got no usable answer
    ├── AuthenticationError   the API key is missing or was refused
    ├── ModelError            the provider does not have the model
    ├── BudgetError           the request would exceed the user's limit
    ├── QuotaError            the account's quota is spent, or the wait is over a minute
    ├── RejectedError         the provider refuses the request as it is
    │   ├── ContextError      the request exceeds the model's context window
    │   ├── FormatError       the model does not support the requested reply format
    │   └── JudgeRejectedError  three requests were rejected alike: this run sends the judge no more of them
    ├── UnreachableError      the request never reached the server; a retry may help
    │   └── JudgeDownError    the server was unreachable several times in a row: this run sends it no more requests
    ├── OverloadError         the provider cannot answer now; a retry may help
    │   ├── LostError         the reply did not arrive complete, and may have been charged
    │   ├── RateLimitError    too many requests; says how long to wait if the provider does
    │   └── FlexUnavailableError  the flex tier has no capacity now
    ├── RefusalError          the judge declined to answer
    ├── FilterError           the provider withheld the answer
    ├── TruncatedError        the answer was cut off at the token limit
    ├── ReplyError            the answer has the wrong form or content
    ├── ReplayError           there is no recorded answer for this request
    ├── OfflineError          the request would leave this machine, which is not allowed
    └── PlannedError          the request would be sent if this were not a dry run

Errors that the next question would raise as well never become failed scores. Those that any judge would raise
(`STOPS_RUN`) stop the run. Those of one judge (`STOPS_JUDGE`) stop its scorers, and the run if no other scorer is left.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from sysconfig import get_path
from traceback import extract_tb
from typing import Any, Self, final
from urllib.parse import unquote_to_bytes

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from judgekit.look_alikes import tell_apart

_FRAMES_SHOWN = 3
_KNOWN_SHOWN = 10
_NOT_SHOWN = "details are hidden because store_text is false"


class JudgekitError(Exception):
    """The base class of all errors that judgekit raises on purpose."""

    def without_message(self) -> Self:
        """Return the error without its message, which may quote a recording or what was sent to a provider."""
        error = self.__new__(type(self), f"{type(self).__name__}: {_NOT_SHOWN}")
        error.__dict__.update(self.__dict__)
        return error

    def __reduce__(self) -> tuple[object, ...]:
        # Exception.__reduce__ calls the class with args, which hold the message and not the arguments of __init__.
        return self.__new__, (type(self), *self.args), self.__dict__


@final
class TraceError(JudgekitError):
    """A recording that cannot be read.

    Args:
        problem: The problem, and where it is in the record.
        path: The file.
        index: The position of the record in the file, from 0; ``None`` if the whole file is meant.
        line: The line in a JSONL file, from 1.
    """

    def __init__(
        self, problem: str, *, path: Path | str | None = None, index: int | None = None, line: int | None = None
    ) -> None:
        self.problem = problem
        self.path = path
        self.index = index
        self.line = line
        where = "" if path is None else path_text(path)
        if line is not None:
            where += f" (line {line})" if where else f"line {line}"
        elif index is not None:
            where += f"{', ' if where else ''}record {index}"
        super().__init__(f"{where}: {problem}" if where else problem)

    def without_words(self) -> "TraceError":
        """Return the error with the place of the problem and without a description of it."""
        problem = f"cannot be read; {_NOT_SHOWN}"
        return TraceError(problem, path=self.path, index=self.index, line=self.line)


@final
class PromptError(JudgekitError):
    """A prompt file that cannot be used."""


@final
class ConfigError(JudgekitError):
    """A judge, scorer or setting that does not exist or does not fit."""

    @classmethod
    def unknown(cls, kind: str, name: object, choices: Iterable[str], guess: str = "") -> "ConfigError":
        """Return an error saying that no ``kind`` is called ``name``, with a suggestion and the choices."""
        return cls(unknown_name_message(kind, name, choices, guess))


@final
class StoreError(JudgekitError):
    """A file written by judgekit that cannot be used."""


@final
class WorkerError(JudgekitError):
    """Workers, which score parts of a run in other processes, died or cannot start."""


@final
class ExportError(JudgekitError):
    """Scores that another system refuses, or that cannot be sent there."""


class JudgeError(JudgekitError):
    """A question that got no usable answer."""


@final
class AuthenticationError(JudgeError):
    """The API key is missing or was refused."""


@final
class ModelError(JudgeError):
    """The provider does not have the model, or not for this account."""


@final
class BudgetError(JudgeError):
    """The request would exceed the user's limit; it was not sent."""


@final
class QuotaError(JudgeError):
    """The provider cannot answer this judge for a while: the quota is spent, or the wait is over a minute."""


class RejectedError(JudgeError):
    """The provider refuses the request as it is; a retry cannot help.

    Args:
        problem: What happened.
        output_limit_name: The parameter that the server expects in place of judgekit's output limit, if it refused that.
    """

    def __init__(self, problem: str, *, output_limit_name: str | None = None) -> None:
        super().__init__(problem)
        self.output_limit_name = output_limit_name


@final
class ContextError(RejectedError):
    """The request exceeds the model's context window."""


@final
class FormatError(RejectedError):
    """The model does not support the requested reply format, such as a JSON Schema."""


@final
class JudgeRejectedError(RejectedError):
    """The provider rejected three requests alike and answered none, so this run sends the judge no more requests."""


class UnreachableError(JudgeError):
    """The request never reached the server: connection refused, unknown host, connect timeout. It costs nothing."""


@final
class JudgeDownError(UnreachableError):
    """The server was unreachable several times in a row, so this run sends no more requests to it."""


class OverloadError(JudgeError):
    """The provider cannot answer now: server error, lost connection, timeout. A retry may help.

    Args:
        problem: What happened.
        status: The HTTP status, if there was a response.
        retry_after: Seconds to wait, if the provider says so.
    """

    def __init__(self, problem: str, *, status: int | None = None, retry_after: float | None = None) -> None:
        super().__init__(problem)
        self.status = status
        self.retry_after = retry_after


@final
class LostError(OverloadError):
    """The request was sent and its reply did not arrive complete; it may have been charged."""


@final
class RateLimitError(OverloadError):
    """Too many requests for this account."""


@final
class FlexUnavailableError(OverloadError):
    """The flex tier has no capacity now. The request is sent again at the full price."""


@final
class RefusalError(JudgeError):
    """The judge declined to answer."""


@final
class FilterError(JudgeError):
    """The provider's content filter withheld the answer."""


@final
class TruncatedError(JudgeError):
    """The answer was cut off at the token limit."""


@final
class ReplyError(JudgeError):
    """The answer has the wrong form or content, even after the judge was shown the error once.

    Args:
        problem: The problem with the answer.
        text: The answer as received.
    """

    def __init__(self, problem: str, *, text: str) -> None:
        super().__init__(problem)
        self.text = text


@final
class ReplayError(JudgeError):
    """There is no recorded answer for this request, and requests are off."""


@final
class OfflineError(JudgeError):
    """The request would leave this machine, which is not allowed."""


@final
class PlannedError(JudgeError):
    """The request would be sent if this were not a dry run."""


STOPS_JUDGE = (BudgetError, QuotaError, JudgeDownError, JudgeRejectedError)
"""Errors that the next question to the same judge would raise as well. They stop the scorers of that judge."""
STOPS_RUN = (AuthenticationError, ModelError, ConfigError, StoreError)
"""Errors that the next question to any judge would raise as well. They stop the run."""
STOPS = (*STOPS_JUDGE, *STOPS_RUN)
"""Errors that never become a failed score."""
UNCHARGED = (
    AuthenticationError,
    ContextError,
    FlexUnavailableError,
    FormatError,
    ModelError,
    OverloadError,
    QuotaError,
    RateLimitError,
    RejectedError,
    UnreachableError,
)
"""Errors, not their subclasses, of requests without an answer. Refused, filtered or truncated answers are charged."""
SAFE_MESSAGES = (BudgetError, JudgeDownError, ConfigError, StoreError)
"""Classes (not their subclasses) whose messages judgekit writes itself, quoting no recording and no provider."""


def merge_errors(errors: Sequence[JudgeError]) -> JudgeError:
    """Return one error of the first one's kind, which is in `STOPS_JUDGE`, with the messages of all."""
    kind = next(kind for kind in STOPS_JUDGE if isinstance(errors[0], kind))
    return kind("; ".join(dict.fromkeys(map(str, errors))))


def path_text(path: Path | str) -> str:
    """Return a path as text that any file can hold: the path itself, or its URI if it is not valid UTF-8."""
    text = str(path)
    try:
        text.encode()
    except UnicodeEncodeError:
        return Path(path).absolute().as_uri()
    return text


def text_path(text: str) -> Path:
    """Return the path that `path_text` turned into this text."""
    return Path(os.fsdecode(unquote_to_bytes(text.removeprefix("file://"))) if text.startswith("file:///") else text)


def check_choice(kind: str, name: object, choices: Collection[str]) -> None:
    """Check that a name is one of the choices.

    Raises:
        ConfigError: It is not; the error says so of this ``kind`` of name, as `ConfigError.unknown` does.
    """
    if name not in choices:
        raise ConfigError.unknown(kind, name, choices)


def unknown_name_message(
    kind: str, name: object, choices: Iterable[str], guess: str = "", limit: int = _KNOWN_SHOWN
) -> str:
    """Return a message that no ``kind`` is called ``name``, with the nearest name or the ``guess``, and the choices."""
    names = list(choices)
    folded = {choice.casefold(): choice for choice in names}
    near = closest_name(str(name).casefold(), folded)
    meant = folded[near] if near else guess
    named, guessed = tell_apart([repr(name), repr(meant)])
    hint = f" Did you mean {guessed}?" if meant else ""
    return f"no {kind} is called {named}.{hint} Known: {join_limited(names, limit, ', ') or 'none'}"


def closest_name(name: str, names: Iterable[str], similarity: float = 0.6) -> str:
    """Return the name most similar to the given one; an empty string if none is similar enough (by `difflib`)."""
    from difflib import get_close_matches  # noqa: PLC0415 - only errors need it

    return next(iter(get_close_matches(name, list(names), 1, similarity)), "")


def error_with_location(error: BaseException) -> str:
    """Return an error's text with the lines of user code that raised it, the innermost last."""
    try:
        problem = f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - the error of another package may raise anything here
        problem = type(error).__name__
    frames = [frame for frame in extract_tb(error.__traceback__) if _is_user_code(frame.filename)]
    places = [f"{Path(frame.filename).name}, line {frame.lineno}, in {frame.name}" for frame in frames[-_FRAMES_SHOWN:]]
    return f"{problem} ({' > '.join(places)})" if places else problem


def _is_user_code(file: str) -> bool:
    is_library = file.startswith(get_path("stdlib")) and "-packages" not in file
    return not (is_library or file.startswith((str(Path(__file__).parent), "<")))


_JSON_KINDS = {"tuple_type": "a list", **dict.fromkeys(("dict_type", "model_type", "dataclass_type"), "an object")}
"""What a value should be, by the types of pydantic's errors whose text names types of Python."""


def validation_message(error: ValidationError, record: object = None) -> str:
    """Return the problems that a validation found, with JSON paths, on one line.

    Args:
        error: The error that pydantic raised.
        record: The validated value. If given, the paths leave out the names of union branches that pydantic adds.
    """
    problems = error.errors(include_url=False, include_context=False)
    shown = [f"{_json_path(problem, record)}: {_problem_text(problem)}" for problem in problems[:3]]
    more = f"; and {len(problems) - 3} more" if len(problems) > 3 else ""
    return "; ".join(shown) + more


def _problem_text(problem: ErrorDetails) -> str:
    if problem["type"] == "value_error":  # raised by judgekit, whose message is complete
        return problem["msg"].removeprefix("Value error, ")
    kind = _JSON_KINDS.get(problem["type"])
    expected = f"Input should be {kind}" if kind else problem["msg"]
    return f"{expected}, found {short_repr(problem['input'])}"


def _json_path(problem: ErrorDetails, record: object) -> str:
    steps = problem["loc"]
    if record is not None:
        lacking = steps[-1:] if problem["type"] == "missing" else ()
        steps = (*_steps_within(record, steps), *lacking)
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    path = path.removeprefix(".") or "the record"
    return path if len(path) <= 120 else f"{path[:60]}...{path[-20:]}"


def _steps_within(value: Any, steps: Iterable[int | str]) -> Iterator[int | str]:
    for step in steps:
        try:
            value = value[step]
        except (LookupError, TypeError):
            continue
        yield step


def join_limited(items: Iterable[str], limit: int = 20, separator: str = "; ") -> str:
    """Return the first items joined into one text, and how many more there are."""
    shown = list(items)
    more = [f"and {len(shown) - limit} more"] if len(shown) > limit else []
    return separator.join(shown[:limit] + more)


def count_text(count: int, noun: str) -> str:
    """Return a count with its noun, such as ``1 record`` or ``2,000 records``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def short_repr(value: object) -> str:
    """Return the repr of a value, shortened to fit a message."""
    try:
        return truncated(repr(value), 80)
    except ValueError:  # it holds an integer with more digits than Python writes
        return f"a number of too many digits, or a {type(value).__name__} with one"


def short_reprs(values: Sequence[object]) -> list[str]:
    """Return the reprs of values that are shown next to each other, shortened to fit a message; see `tell_apart`."""
    return tell_apart(list(map(repr, values)), 80)


def truncated(text: str, max_length: int) -> str:
    """Return the text, cut off with three dots if it is longer than ``max_length`` characters."""
    return text if len(text) <= max_length else f"{text[: max_length - 3]}..."
