"""A judge for tests, which answers from a script, without a model or a network."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, TypeAlias, cast

from pydantic import BaseModel

from judgekit.errors import ConfigError
from judgekit.judges.judge import Judge
from judgekit.judges.request import Reply, Request
from judgekit.traces.message import JsonObject

ScriptLine: TypeAlias = str | JsonObject | BaseModel | Exception
RequestPredicate: TypeAlias = Callable[[Request], bool]
Script: TypeAlias = (
    Sequence[ScriptLine]
    | Mapping[str, ScriptLine | Sequence[ScriptLine]]
    | Mapping[RequestPredicate, ScriptLine | Sequence[ScriptLine]]
    | Callable[[Request], ScriptLine]
)

_MODEL = "script"


class ScriptedClient:
    """A client that answers from a script, and keeps the requests that it received; see `ScriptedJudge`."""

    identity = "script"

    def __init__(self, script: Script) -> None:
        self.requests: list[Request] = []
        self._line: Callable[[Request], ScriptLine]
        if callable(script):
            self._line = script
        elif isinstance(script, Mapping):
            cases = [(case, _spoken(lines)) for case, lines in script.items()]
            self._line = lambda request: _next(request, cases)
        else:
            in_order = [("", iter(script))]
            self._line = lambda request: _next(request, in_order)

    async def complete(self, request: Request, /) -> Reply:
        """Return the script's line for a request, or raise it if it is an exception."""
        self.requests.append(request)
        line = self._line(request)
        if isinstance(line, Exception):
            raise line
        if isinstance(line, Reply):
            return line
        if isinstance(line, BaseModel):
            return Reply(text=line.model_dump_json(), model=_MODEL)
        return Reply(text=line if isinstance(line, str) else json.dumps(line), model=_MODEL)

    async def aclose(self) -> None:
        """Do nothing: there are no connections."""


def _spoken(lines: ScriptLine | Sequence[ScriptLine]) -> Iterator[ScriptLine]:
    """Return the lines of a list in order, or a single line again and again."""
    if isinstance(lines, str | dict | BaseModel | Exception):
        return repeat(lines)
    return iter(lines)


def _next(request: Request, cases: Sequence[tuple[str | RequestPredicate, Iterator[ScriptLine]]]) -> ScriptLine:
    prompt = request.prompt.partition("@")[0]
    for case, lines in cases:
        if case(request) if callable(case) else case in ("", prompt):
            try:
                return next(lines)
            except StopIteration:
                raise ConfigError(f"the script has no more lines for {prompt!r}") from None
    raise ConfigError.unknown("scripted prompt", prompt, [case for case, _ in cases if isinstance(case, str)])


class ScriptedJudge(Judge):
    """A judge that answers from a script, for tests of your own scorers.

    Args:
        script: Replies in order; or replies by the name of the prompt or by a predicate on the request, where a list is
            used in order and a single reply answers every request; or a function of the request. A reply is an object
            or text; a `Reply`, which may be refused, filtered or truncated; or an exception, which is raised as if the
            provider had failed (any of `judgekit.errors`, such as ``RateLimitError("busy", retry_after=1)``).
        settings: Those of `Judge`, such as ``attempts`` (1 if not given) or ``fallback``.

    Example:
        ``ScriptedJudge({"agent_goal_with_reference": {"verdict": "achieved", ...}})``
    """

    def __init__(self, script: Script, **settings: Any) -> None:
        settings = {"cache_mode": "off", "attempts": 1, **settings}
        super().__init__("scripted/judge", client=ScriptedClient(script), **settings)

    @property
    def requests(self) -> Sequence[Request]:
        """The requests that the judge received, in order."""
        return cast("ScriptedClient", self.client).requests
