"""Every error that judgekit raises on purpose.

JudgekitError
├── TraceError                a recording that cannot be read
├── PromptError               a prompt file that cannot be used
├── ConfigError               a judge, scorer or setting that does not exist or does not fit
├── StoreError                a file of judgekit's own that cannot be used
└── JudgeError                a question that got no usable answer
    ├── AuthenticationError   the key is missing or refused
    ├── ModelError            the provider has no such model
    ├── BudgetError           the request would pass the limit that the user set
    ├── QuotaError            the provider will not answer this judge for long: the account's quota is spent
    ├── RejectedError         the provider refuses the request as it is
    │   ├── ContextError      the request is longer than the model can read
    │   └── FormatError       the model cannot be held to the form of reply that was asked for
    ├── UnreachableError      the request never reached the server; trying again may help
    │   └── JudgeDownError    the server was not reached again and again: no more is sent to it in this run
    ├── OverloadError         the provider cannot answer now; asking again may help
    │   ├── LostError         the reply did not arrive whole, and may have been charged
    │   └── RateLimitError    too many requests; says how long to wait where the provider does
    ├── RefusalError          the judge declined to answer
    ├── FilterError           the provider withheld the answer
    ├── TruncatedError        the answer was cut off at the token limit
    ├── ReplyError            the answer is not what was asked for
    ├── ReplayError           no recorded answer for this request
    ├── OfflineError          the request would leave this machine, and that is switched off
    └── PlannedError          the request would be sent, were this not a dry run

What the next question would meet as well is never a failed score. If every judge would meet it (`STOPS_RUN`), it stops the
run. If it is about one judge (`STOPS_JUDGE`), it stops the scorers of that judge, and the run when no other scorer is left.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from sysconfig import get_path
from traceback import extract_tb
from typing import Any, Self, final
from urllib.parse import unquote_to_bytes

from pydantic import ValidationError
from pydantic_core import ErrorDetails

_FRAMES_SHOWN = 3
_KNOWN_SHOWN = 10
_NOT_SHOWN = "its words are not shown, since store_text is false"


class JudgekitError(Exception):
    """The root: catch it to catch everything that judgekit raises on purpose."""

    def without_words(self) -> Self:
        """Return the error without its words, which may quote a recording or repeat what was sent to a provider."""
        error = self.__new__(type(self), f"{type(self).__name__}: {_NOT_SHOWN}")
        error.__dict__.update(self.__dict__)
        return error

    def __reduce__(self) -> tuple[object, ...]:
        # Exception's own calls the class with args, which hold the message and not what __init__ made it of.
        return self.__new__, (type(self), *self.args), self.__dict__


@final
class TraceError(JudgekitError):
    """A recording that cannot be read.

    Args:
        found: What is wrong, and where in the record.
        path: The file.
        index: The record's position in the file, from 0; ``None`` when the whole file is meant.
        line: The line in a JSONL file, from 1.
    """

    def __init__(
        self, found: str, *, path: Path | str | None = None, index: int | None = None, line: int | None = None
    ) -> None:
        self.found = found
        self.path = path
        self.index = index
        self.line = line
        where = "" if path is None else path_text(path)
        if index is not None:
            where += f"{', ' if where else ''}record {index}"
        if line is not None:
            where += f" (line {line})"
        super().__init__(f"{where}: {found}" if where else found)

    def without_words(self) -> "TraceError":
        """Return the error with the place, and not what was found there."""
        found = f"cannot be read; {_NOT_SHOWN}"
        return TraceError(found, path=self.path, index=self.index, line=self.line)


@final
class PromptError(JudgekitError):
    """A prompt file that cannot be used."""


@final
class ConfigError(JudgekitError):
    """A judge, scorer or setting that does not exist or does not fit."""

    @classmethod
    def unknown(cls, kind: str, name: object, choices: Iterable[str], guess: str = "") -> "ConfigError":
        """No ``kind`` is called ``name``: says which is nearest, or else the ``guess``, and which there are."""
        return cls(unknown(kind, name, choices, guess))


@final
class StoreError(JudgekitError):
    """A file of judgekit's own that cannot be used."""


class JudgeError(JudgekitError):
    """A question that got no usable answer."""


@final
class AuthenticationError(JudgeError):
    """The key is missing or refused."""


@final
class ModelError(JudgeError):
    """The provider has no such model, or not for this account."""


@final
class BudgetError(JudgeError):
    """The request would pass the limit that the user set; it was not sent."""


@final
class QuotaError(JudgeError):
    """The provider will not answer this judge for long: the account's quota is spent, or it asks to wait over a minute."""


class RejectedError(JudgeError):
    """The provider refuses the request as it is; asking again cannot help."""


@final
class ContextError(RejectedError):
    """The request is longer than the model can read."""


@final
class FormatError(RejectedError):
    """The model cannot be held to the form of reply that was asked for, such as a JSON Schema."""


class UnreachableError(JudgeError):
    """The request never reached the server: connection refused, unknown host, no connection in time. It costs nothing."""


@final
class JudgeDownError(UnreachableError):
    """The server was not reached in a series of attempts, so no further request is sent to it in this run."""


class OverloadError(JudgeError):
    """The provider cannot answer now: server error, lost connection, deadline passed. Asking again may help.

    Args:
        found: What happened.
        status: The HTTP status, if there was a reply at all.
        retry_after: Seconds to wait, where the provider says so.
    """

    def __init__(self, found: str, *, status: int | None = None, retry_after: float | None = None) -> None:
        super().__init__(found)
        self.status = status
        self.retry_after = retry_after


@final
class LostError(OverloadError):
    """The request was sent and its reply did not arrive whole; it may have been charged."""


@final
class RateLimitError(OverloadError):
    """Too many requests for this account."""


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
    """The answer is not what was asked for, not even after it was shown its error once.

    Args:
        found: What is wrong with it.
        text: The answer as it came.
    """

    def __init__(self, found: str, *, text: str) -> None:
        super().__init__(found)
        self.text = text


@final
class ReplayError(JudgeError):
    """No recorded answer for this request, and requests are off."""


@final
class OfflineError(JudgeError):
    """The request would leave this machine, and that is switched off."""


@final
class PlannedError(JudgeError):
    """The request would be sent, were this not a dry run."""


STOPS_JUDGE = (BudgetError, QuotaError, JudgeDownError)
"""Errors that the next question to the same judge would meet as well. They stop the scorers of that judge."""
STOPS_RUN = (AuthenticationError, ModelError, ConfigError, StoreError)
"""Errors that the next question to any judge would meet as well. They stop the run."""
STOPS = (*STOPS_JUDGE, *STOPS_RUN)
"""Errors that never become a failed score."""
UNCHARGED = (
    AuthenticationError,
    ContextError,
    FormatError,
    ModelError,
    OverloadError,
    QuotaError,
    RateLimitError,
    RejectedError,
    UnreachableError,
)
"""Errors of requests that no model answered; not the classes below them. Answers that are refused, filtered or cut off are
paid for like others."""
OWN_WORDS = (BudgetError, JudgeDownError, ConfigError, StoreError)
"""Classes whose words are judgekit's own, and quote neither a recording nor a provider; not those below them."""


def joined(errors: Sequence[JudgeError]) -> JudgeError:
    """Return one of `STOPS_JUDGE`, the kind of the first error, that says what all of them do."""
    kind = next(kind for kind in STOPS_JUDGE if isinstance(errors[0], kind))
    return kind("; ".join(dict.fromkeys(map(str, errors))))


def path_text(path: Path | str) -> str:
    """Return a path as text that any file can hold: the path itself, or its URI where its bytes are no UTF-8."""
    text = str(path)
    try:
        text.encode()
    except UnicodeEncodeError:
        return Path(path).absolute().as_uri()
    return text


def text_path(text: str) -> Path:
    """Return the path that `path_text` made a text of."""
    return Path(os.fsdecode(unquote_to_bytes(text.removeprefix("file://"))) if text.startswith("file:///") else text)


def must_be_known(kind: str, name: object, choices: Sequence[str]) -> None:
    """Check that a name is one of the choices.

    Raises:
        ConfigError: It is not; the error says so of this ``kind`` of name, as `ConfigError.unknown` does.
    """
    if name not in choices:
        raise ConfigError.unknown(kind, name, choices)


def unknown(kind: str, name: object, choices: Iterable[str], guess: str = "", most: int = _KNOWN_SHOWN) -> str:
    """Return that no ``kind`` is called ``name``, which is nearest, or else the ``guess``, and which there are."""
    names = list(choices)
    folded = {one.casefold(): one for one in names}
    near = nearest(str(name).casefold(), folded)
    meant = folded[near] if near else guess
    hint = f", did you mean {meant!r}?" if meant else "."
    return f"no {kind} is called {name!r}{hint} Known: {listed(names, most, ', ') or 'none'}"


def nearest(name: str, names: Iterable[str]) -> str:
    """Return the one of the names that is most like a name; nothing if none is like it."""
    return next(iter(get_close_matches(name, list(names), 1)), "")


def located(error: BaseException) -> str:
    """Return an error with the places in the user's code where it was raised, the innermost last."""
    found = f"{type(error).__name__}: {error}"
    frames = [frame for frame in extract_tb(error.__traceback__) if _is_of_users(frame.filename)]
    places = [f"{Path(one.filename).name}, line {one.lineno}, in {one.name}" for one in frames[-_FRAMES_SHOWN:]]
    return f"{found} ({' > '.join(places)})" if places else found


def _is_of_users(file: str) -> bool:
    is_library = file.startswith(get_path("stdlib")) and "-packages" not in file
    return not (is_library or file.startswith((str(Path(__file__).parent), "<")))


def explain(error: ValidationError, record: object = None) -> str:
    """Return the problems that a validation found, with JSON paths, on one line.

    Args:
        error: What pydantic found.
        record: What was validated; given it, the paths leave out the branches of unions that pydantic names in them.
    """
    problems = error.errors(include_url=False, include_context=False)
    shown = [f"{_json_path(one, record)}: {_said(one)}" for one in problems[:3]]
    more = f"; and {len(problems) - 3} more" if len(problems) > 3 else ""
    return "; ".join(shown) + more


def _said(problem: ErrorDetails) -> str:
    if problem["type"] == "value_error":  # raised by judgekit, which says itself what it found
        return problem["msg"].removeprefix("Value error, ")
    return f"{problem['msg']}, found {shortened(problem['input'])}"


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


def listed(items: Iterable[str], most: int = 20, between: str = "; ") -> str:
    """Things to name in a message, and how many more there are."""
    shown = list(items)
    more = [f"and {len(shown) - most} more"] if len(shown) > most else []
    return between.join(shown[:most] + more)


def number_of(times: int, thing: str) -> str:
    """How many things there are, such as ``1 record`` or ``2,000 records``."""
    return f"{times:,} {thing}{'' if times == 1 else 's'}"


def shortened(value: object) -> str:
    """Return a value as it would be written in code, cut to fit a message."""
    return truncated(repr(value), 80)


def truncated(text: str, longest: int) -> str:
    """Return a text, or the beginning of one that is longer, with three dots behind it."""
    return text if len(text) <= longest else f"{text[: longest - 3]}..."
