"""The ranking of a sample, from the sample itself or from a tool's result."""

from typing import cast

from pydantic import ValidationError
from pydantic_core import from_json

from judgekit.errors import ConfigError, short_repr, validation_message
from judgekit.traces.message import ToolMessage
from judgekit.traces.pairing import pair_results
from judgekit.traces.sample import Ranking, Sample
from judgekit.traces.tree import Branch, MessageNumber, branches, walk_messages


def find_ranking(sample: Sample, tool: str | None, path: str | None) -> Ranking | str:
    """Return the ranking, or the reason to skip the sample.

    With a ``tool``, the ids come from its last result without an error, and the relevance from ``sample.ranking``.

    Raises:
        ValueError: The result does not contain a list of ids.
    """
    ranking = sample.ranking
    if ranking is None:
        return "the sample has no ranking"
    if tool is None:
        return ranking
    if (last_result := _last_result(sample, tool)) is None:
        return f"the tool {tool!r} returned no result without an error"
    number, text = last_result
    try:
        return Ranking.model_validate({"retrieved": _ids(text, path), "relevance": ranking.relevance})
    except ValueError as error:
        problem = validation_message(error) if isinstance(error, ValidationError) else str(error)
        problem = problem.removeprefix("the record: ")
        raise ValueError(f"message {number}, the result of {tool!r}: {problem}") from error


def check_jmespath(path: str) -> None:
    """Check that a JMESPath is valid."""
    import jmespath  # noqa: PLC0415 - rankings are rarely read from results

    try:
        jmespath.compile(path)
    except (TypeError, ValueError) as error:
        problem = str(error).partition("\n")[0]
        raise ConfigError(f"path: {path!r} is not a valid JMESPath: {problem}") from error


def _last_result(sample: Sample, tool: str) -> tuple[MessageNumber, str] | None:
    callers = {branch.path: pair_results(branch.trace.messages).calls for branch in branches(sample.trace)}
    last_result = None
    for branch, index in walk_messages(Branch(sample.trace)):
        message, caller = branch.trace.messages[index], callers[branch.path].get(index)
        if caller and caller.call.name == tool and isinstance(message, ToolMessage) and not message.is_error:
            last_result = branch.number(index), message.text
    return last_result


def _ids(text: str, path: str | None) -> list[object]:
    try:
        parsed: object = from_json(text)
    except ValueError as error:
        raise ValueError(f"expected JSON, found {short_repr(text)}: {error}") from error
    if path is not None:
        import jmespath  # noqa: PLC0415 - as above

        parsed = jmespath.search(path, parsed)
    if not isinstance(parsed, list):
        where = "a list" if path is None else f"a list at {path!r}"
        raise ValueError(f"expected {where}, found {short_repr(parsed)}")
    return cast("list[object]", parsed)
