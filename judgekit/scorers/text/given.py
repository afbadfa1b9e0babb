"""What all text scorers compare: the agent's last message, and the texts that it should be like."""

from typing import NamedTuple

from judgekit.scoring import Blocking
from judgekit.traces.rendering import encodable
from judgekit.traces.sample import Sample

NO_RESPONSE = "the sample has no response: there is no message of the agent"


class Given(NamedTuple):
    """A response, which may be empty, and references, at least one, of which none is blank; text that can be written."""

    response: str
    references: tuple[str, ...]


class TextScorer(Blocking):
    """A scorer that compares the response of a sample with its references, and reads nothing else of it."""


def given(sample: Sample) -> Given | str:
    """What is to be compared, or why nothing can be: such a sample is skipped."""
    if (response := sample.trace.response) is None:
        return NO_RESPONSE
    if references := sample.all_references:
        return Given(encodable(response), tuple(dict.fromkeys(map(encodable, references))))
    is_empty = sample.reference is not None or sample.references
    return "the reference is empty" if is_empty else "the sample has no reference"
