"""Traces: recorded conversations with their metadata."""

import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from judgekit.traces.images import ImageSettings
from judgekit.traces.message import CALLER_MESSAGES, Requestor, ToolCall
from judgekit.traces.pairing import call_errors
from judgekit.traces.recording import Recording
from judgekit.traces.rendering import (
    Passage,
    Rendering,
    count_hidden_media,
    limit_images,
    message_passages,
    render_passages,
)
from judgekit.traces.shortening import shorten_passages
from judgekit.traces.tree import Branch, MessageNumber, branches, conversation_path


class ActualCall(NamedTuple):
    """A tool call and its place in the conversation.

    Attributes:
        message: The number of its message.
        turn: The number of user messages so far, in the conversation of the agent itself.
        call: The call.
        agent: The name of the agent that made it; ``None`` if unknown.
        delegates: Whether it started a sub-agent.
    """

    message: MessageNumber
    turn: int
    call: ToolCall
    agent: str | None = None
    delegates: bool = False


class Trace(Recording):
    """A recorded conversation.

    Attributes:
        schema_version: The version of this schema.
        id: The id in the recording; ``None`` if there is none.
        messages: The messages, in order.
        source: The file and format that it was read from; ``None`` if it was not read from a file.
        tools: The tools that the agent could call.
        started_at: The start; ``None`` if unknown.
        ended_at: The end; ``None`` if unknown.
        usage: The token counts of the whole conversation as reported, never computed; ``None`` if not reported.
        cost_usd: The cost in US dollars as reported, never computed; ``None`` if not reported.
        termination: The reason why the conversation ended, as recorded; ``None`` if unknown.
        error: The error with which the agent failed in the end, as recorded; ``None`` if none was recorded.
        labels: The verdicts that came with the recording.
        children: The traces of sub-agents, and of other conversations in the same record.
        metadata: Facts about the trace that have no attribute of their own.
        extra: Data of the source without a matching attribute, verbatim.
        warnings: Data that could not be converted exactly.
    """

    def tool_calls(self, requestor: Requestor = "assistant") -> tuple[ActualCall, ...]:
        """Return the calls of one side, in order; each of the agent's calls is followed by those of its sub-agents."""
        if self.children and requestor == "assistant":
            return tuple(_walk_calls(Branch(self)))
        calls: list[ActualCall] = []
        turn, kind = 0, CALLER_MESSAGES[requestor]
        for number, message in enumerate(self.messages, 1):
            if message.role == "user":
                turn += 1
            if isinstance(message, kind):
                agent = message.agent if message.role == "assistant" else None
                for call in message.tool_calls:
                    calls.append(ActualCall(number, turn, call, agent))  # noqa: PERF401 - most messages have one call
        return tuple(calls)

    def call_errors(self, requestor: Requestor = "assistant") -> tuple[bool | None, ...]:
        """Return whether each call of one side failed, in the order of `tool_calls`.

        It is ``None`` for a call without a result, or if the format cannot say.
        """
        if not self.children or requestor == "user":
            return call_errors(self.messages, requestor)
        errors = {branch.path: iter(call_errors(branch.trace.messages, requestor)) for branch in branches(self)}
        return tuple(next(errors[conversation_path(call.message)]) for call in self.tool_calls(requestor))

    def render(
        self, *, tool_result_limit: int = 8_000, budget_tokens: int | None = None, images: ImageSettings | None = None
    ) -> Rendering:
        """Return the conversation as text for a judge, with those of sub-agents; this is the only way it becomes text.

        Messages are numbered from 1. A sub-agent stands behind the call that started it, between two lines with its
        path, and its messages are numbered by paths (`MessageNumber`). A tool result that repeats the last message of
        the sub-agent refers to that.

        The text stands between two lines with a mark that is the hash of what they
        enclose; each header carries the mark and each line of content starts with ``| ``, so no content can end the
        conversation or start a message.

        Within a budget, the first and last message and those of the user stay complete as long as possible. In between,
        tool results are cut first, longest first, then other text and calls, and then whole messages are dropped,
        starting in the middle. Sub-agents give way before that, the deepest first. Each cut is marked with the number of missing characters; message numbers do not change.

        Images take up at most half of the budget, or what the text leaves. Each has a line of its own behind the text of
        its message, ``[MARK 4] image 1: image/png, 640 x 480``, behind which a request has the image itself.

        Args:
            tool_result_limit: The characters of a tool result to keep; a note replaces the middle of a longer one.
            budget_tokens: The maximum number of tokens, at four bytes each; no limit if not given.
            images: The images to show; none if not given.

        Raises:
            ValueError: The budget is too small even for the headers.
        """
        shown: Sequence[Passage] = message_passages(Branch(self), tool_result_limit, images)
        if images is not None:
            most = images.max_images
            shown = limit_images(shown, most, sys.maxsize, f"more than max_images = {most:,}")
        if budget_tokens is not None:
            shown = shorten_passages(shown, self, budget_tokens)
        return render_passages(shown, count_hidden_media(self, shown, images))


def _walk_calls(branch: Branch, turn: int = 0) -> Iterator[ActualCall]:
    """Yield the tool calls of the agents of a tree, depth first: each call is followed by those of its sub-agents."""
    started = branch.started
    for index, message in enumerate(branch.trace.messages):
        if message.role == "user" and not branch.path:
            turn += 1
        elif message.role == "assistant":
            for position, call in enumerate(message.tool_calls):
                children = [child for child in started.get(index, ()) if child.position == position]
                yield ActualCall(branch.number(index), turn, call, branch.speaker(message), bool(children))
                for child in children:
                    yield from _walk_calls(child, turn)
    for child in started.get(-1, ()):
        yield from _walk_calls(child, turn)
