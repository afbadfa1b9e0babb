"""The turns of a conversation: each is a message of the user and all until the next one."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from judgekit.traces.sample import Sample
from judgekit.traces.sentences import Sentence, agent_sentences
from judgekit.traces.trace import Trace
from judgekit.traces.tree import Branch, MessageNumber


class Turn(NamedTuple):
    """A turn: its number, and those of its first message, which is the user's, and of its last."""

    number: int
    first: int
    last: int

    def has(self, message: MessageNumber) -> bool:
        """Return whether a message is part of it, or belongs to a sub-agent that one of its messages started."""
        return self.first <= int(str(message).partition(".")[0]) <= self.last


def find_turns(trace: Trace) -> tuple[Turn, ...]:
    """Return the turns of the agent's own conversation, without those that the user ended before the agent did anything."""
    roles = [message.role for message in trace.messages]
    starts = [index for index, role in enumerate(roles) if role == "user"]
    turns = (Turn(number, start + 1, end) for number, (start, end) in enumerate(pairwise([*starts, len(roles)]), 1))
    return tuple(turn for turn in turns if turn.last == len(roles) or "assistant" in roles[turn.first : turn.last])


def sample_until(sample: Sample, last: int) -> Sample:
    """Return a sample without later messages, and without sub-agents that these started or of which it is unknown."""
    trace = sample.trace
    if last >= len(trace.messages):
        return sample
    kept = {id(child.trace) for index, some in Branch(trace).started.items() if 0 <= index < last for child in some}
    children = tuple(child for child in trace.children if id(child) in kept)
    cut = trace.model_copy(update={"messages": trace.messages[:last], "children": children})
    return sample.model_copy(update={"trace": cut})


def numbered_sentences(trace: Trace, turns: Sequence[Turn] = ()) -> dict[int, Sentence]:
    """Return the agent's sentences by their numbers; if turns are given, only those."""
    numbered = enumerate(agent_sentences(trace), 1)
    return {at: each for at, each in numbered if not turns or any(turn.has(each.message) for turn in turns)}
