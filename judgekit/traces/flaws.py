"""Flaws of an agent's conduct that code can find, without a judge. Each is found only where it is certain."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from pydantic import JsonValue

from judgekit.errors import short_repr
from judgekit.traces.behavior import canonical_call
from judgekit.traces.ending import missing_answer
from judgekit.traces.equality import canonical_json
from judgekit.traces.message import ToolMessage
from judgekit.traces.pairing import pair_results
from judgekit.traces.recording import Recording
from judgekit.traces.rendering import message_text
from judgekit.traces.trace import Trace
from judgekit.traces.tree import Branch, MessageNumber, branches

_FAILURE_WORDS = re.compile(
    r"\b(?:errors?|fail\w*|unable|could ?n[o']t|cannot|can ?n[o']t|did ?n[o']t|was ?n[o']t|not (?:found|available|possible|work\w*)"
    r"|issues?|problems?|invalid|denied|sorry|apolog\w+|unfortunately|instead|retry|try(?:ing)? again|no (?:such|longer|match\w*|results?))\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w{4,}")
_REFERENCE_NAME = re.compile(r"(?:^|[a-z_\W])(?:[Ii]ds?|[Nn]umber|[Ee]mail|[Pp]hone|[Zz]ip|[Ii]ban|[Ss]ku|[Aa]ccount)$")
_REFERENCE = re.compile(r"(?=\D*\d|[^@]+@)[^\s/\\]{4,100}")
_DIGITS, _CERTAIN_DIGITS = re.compile(r"\d+"), 4
_LIMIT = re.compile(r"max|limit|time.?out|exceed|too.?(?:many|long)|length|budget", re.IGNORECASE)
_CLAIM = re.compile(
    r"(?<!\w)(?:(?P<hedge>once|when|after|if|until|before|whether|that|as soon as)\s+)?I(?:['\u2019]ve|\s+have)\s+"
    r"(?:(?:now|just|already|successfully|also)\s+)*(?P<done>[a-z]+)\b(?P<object>[^.!?\n]*)",
    re.IGNORECASE,
)
_NAME_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_IRREGULAR = {
    "send": "sent",
    "buy": "bought",
    "pay": "paid",
    "set": "set",
    "make": "made",
    "write": "written",
    "reset": "reset",
}


class Flaw(NamedTuple):
    """Something that went wrong.

    Attributes:
        message: The number of the message where it happened.
        label: The kind of flaw: ``error_ignored``, ``invented_arguments``, ``repeated``, ``limit_reached``,
            ``stopped_early`` or ``unsupported_claim``.
        reason: What is wrong, in a sentence.
    """

    message: MessageNumber
    label: str
    reason: str


class Flaws(NamedTuple):
    """The flaws of one kind, and the number of places where one could have been."""

    flaws: Sequence[Flaw]
    places: int


def errors_ignored(trace: Trace, is_error: Callable[[ToolMessage], bool]) -> Flaws:
    """Return the failed tool results that no later message of the agent mentions, and whose tool is not called again.

    A message mentions an error if it has a word of failing, the name of the tool, or a word of the error with four letters or
    more that the call did not have.
    """
    flaws: list[Flaw] = []
    places = 0
    for branch in branches(trace):
        messages = branch.trace.messages
        for index, caller in pair_results(messages).calls.items():
            result = messages[index]
            if not isinstance(result, ToolMessage) or result.requestor != "assistant" or not is_error(result):
                continue
            places += 1
            later = [message for message in messages[index + 1 :] if message.role == "assistant"]
            text = "\n".join(map(message_text, later)).casefold()
            call, error = caller.call, message_text(result)
            words = {*_words(error)} - {*_words(canonical_json([call.args, call.args_raw]))}
            is_retried = any(other.name == call.name for message in later for other in message.tool_calls)
            is_mentioned = _FAILURE_WORDS.search(text) or call.name.casefold() in text or words & {*_words(text)}
            if later and not is_retried and not is_mentioned:
                reason = f"the error of {short_repr(call.name)} is neither mentioned nor retried: {short_repr(error)}"
                flaws.append(Flaw(branch.number(index), "error_ignored", reason))
    return Flaws(flaws, places)


def invented_arguments(trace: Trace) -> Flaws:
    """Return the calls with ids, numbers and addresses that stand in no earlier message, result or tool definition.

    Arguments are looked at whose name says that they refer to something (``order_id``, ``email``), with a digit or ``@``. One
    with a number of four digits or more is known by that: a user may say it without its letters. A
    sub-agent may know all that the conversations of other agents hold.
    """
    flaws: list[Flaw] = []
    places = 0
    evidence = {branch.path: _evidence(branch.trace) for branch in branches(trace)} if trace.children else {}
    for branch in branches(trace):
        others = [text for path, text in evidence.items() if path != branch.path] if branch.path else []
        before = _comparable("\n".join([_definitions(branch.trace), *others]))
        for index, message in enumerate(branch.trace.messages):
            if message.role == "assistant":
                for call in message.tool_calls if index else ():  # a reply without its question shows nothing
                    references = [*_references(call.args)]
                    places += len(references)
                    for argument, reference in references:
                        if _core(reference) not in before:
                            reason = f"{short_repr(call.name)} got {argument} = {short_repr(reference)}, which stands nowhere before"
                            flaws.append(Flaw(branch.number(index), "invented_arguments", reason))
                before += _comparable("\n".join(canonical_json(call.args) for call in message.tool_calls))
            before += f"\n{_comparable(message_text(message))}"
    return Flaws(flaws, places)


def repeated_calls(trace: Trace) -> Flaws:
    """Return the calls that repeat an earlier one of the same agent, with equal arguments."""
    flaws: list[Flaw] = []
    places = 0
    for branch in branches(trace):
        earlier: set[str] = set()
        for index, message in enumerate(branch.trace.messages):
            for call in message.tool_calls if message.role == "assistant" else ():
                places += 1
                with suppress(ValueError):  # JSON cannot hold all arguments, such as numbers with thousands of digits
                    canonical = canonical_call(call)
                    if canonical in earlier:
                        reason = f"{short_repr(call.name)} is called with the arguments of an earlier call"
                        flaws.append(Flaw(branch.number(index), "repeated", reason))
                    earlier.add(canonical)
    return Flaws(flaws, places)


def unfinished(trace: Trace) -> Flaws:
    """Return the last message of a conversation that the agent ended without an answer."""
    if not trace.messages:
        return Flaws((), 0)
    if (missing := missing_answer(trace)) is None or not missing.gave_up:
        return Flaws((), 1)
    is_limit = _LIMIT.search(f"{trace.termination or ''} {trace.error or ''}")
    return Flaws([Flaw(len(trace.messages), "limit_reached" if is_limit else "stopped_early", missing.reason)], 1)


def claims_without_call(trace: Trace) -> Flaws:
    """Return the sentences in which the agent says that it did what none of its calls did.

    A claim is "I have cancelled your order", where a tool ``cancel_order`` is defined or called: the verb is that of the
    tool, and the sentence names its object. It is supported by an earlier call of a tool with that verb without an error, of
    any agent.
    """
    definitions = {tool.name for branch in branches(trace) for tool in branch.trace.tools}
    called = {call.name for branch in branches(trace) for call in branch.trace.own_calls()}
    names = ([part.casefold() for part in _NAME_PART.findall(name)] for name in sorted(definitions | called))
    tools = [parts for parts in names if len(parts) > 1]
    done = {_past(verb): verb for verb, *_ in tools}
    flaws: list[Flaw] = []
    places = 0
    for branch in branches(trace):
        verbs_called = _verbs_called(branch)
        for index, message in enumerate(branch.trace.messages):
            for claim in _CLAIM.finditer(message_text(message)) if message.role == "assistant" else ():
                verb = done.get(re.sub(r"([lpt])\1ed$", r"\1ed", claim["done"].casefold()))  # cancelled is canceled
                objects = {_stem(part) for own_verb, *parts in tools if own_verb == verb for part in parts}
                if verb is None or claim["hedge"] or objects.isdisjoint(map(_stem, _words(claim["object"]))):
                    continue
                places += 1
                if not any(called_in < index for called_in in verbs_called.get(verb, ())):
                    reason = f"says {short_repr(claim[0].strip())}, and no call did"
                    flaws.append(Flaw(branch.number(index), "unsupported_claim", reason))
    return Flaws(flaws, places)


def _verbs_called(branch: Branch) -> dict[str, list[int]]:
    """Return where each verb of a tool was called without an error, also by sub-agents."""
    verbs: dict[str, list[int]] = {}
    messages = branch.trace.messages
    failed = {
        (caller.message, caller.position)
        for index, caller in pair_results(messages).calls.items()
        if isinstance(result := messages[index], ToolMessage) and result.is_error
    }
    for index, message in enumerate(messages):
        calls = message.tool_calls if message.role == "assistant" else ()
        for position, call in enumerate(calls):
            if (index, position) not in failed:
                for part in _NAME_PART.findall(call.name):
                    verbs.setdefault(part.casefold(), []).append(index)
    for index, started in branch.started.items():
        for call in (call for child in started for below in branches(child.trace) for call in below.trace.own_calls()):
            for part in _NAME_PART.findall(call.name):
                verbs.setdefault(part.casefold(), []).append(index)
    return verbs


def _evidence(recording: Recording) -> str:
    calls = (canonical_json(call.args) for call in recording.own_calls())
    return "\n".join([_definitions(recording), *map(message_text, recording.messages), *calls])


def _definitions(recording: Recording) -> str:
    return "\n".join(canonical_json([tool.name, tool.description, tool.parameters]) for tool in recording.tools)


def _references(value: JsonValue, name: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _references(inner, key)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(inner, name)
    elif _REFERENCE_NAME.search(name) and _REFERENCE.fullmatch(text := str(value)):
        yield name, text


def _comparable(text: str) -> str:
    return re.sub(r"[\s\-()+.#]", "", text).casefold()


def _core(reference: str) -> str:
    """Return what a reference is known by: its longest number, whatever letters or marks go with it, or all of it."""
    digits = max(_DIGITS.findall(reference), key=len, default="")
    return digits if len(digits) >= _CERTAIN_DIGITS else _comparable(reference)


def _words(text: str) -> Iterator[str]:
    return (word.casefold() for word in _WORD.findall(text))


def _past(verb: str) -> str:
    if verb in _IRREGULAR:
        return _IRREGULAR[verb]
    if verb.endswith("y") and verb[-2:-1] not in "aeiou":
        return f"{verb[:-1]}ied"
    return f"{verb}d" if verb.endswith("e") else f"{verb}ed"


def _stem(word: str) -> str:
    return word.rstrip("s")
