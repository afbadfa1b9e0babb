"""Samples with hashes in place of the data of their media, as runs store them."""

from judgekit.traces.media import media_hash
from judgekit.traces.message import MediaPart, Message, Part
from judgekit.traces.rendering import find_media
from judgekit.traces.sample import Sample
from judgekit.traces.trace import Trace


def hash_media(sample: Sample) -> Sample:
    """Return the sample with the hash of each image and other medium in place of its data."""
    traces = {"trace": sample.trace, "baseline": sample.baseline}
    hashed = {name: _trace(trace) for name, trace in traces.items() if trace is not None and find_media(trace)}
    return sample.model_copy(update=hashed) if hashed else sample


def _trace(trace: Trace) -> Trace:
    messages, children = tuple(map(_message, trace.messages)), tuple(map(_trace, trace.children))
    return trace.model_copy(update={"messages": messages, "children": children})


def _message(message: Message) -> Message:
    if isinstance(message.content, str):
        return message
    return message.model_copy(update={"content": tuple(map(_part, message.content))})


def _part(part: Part) -> Part:
    if not isinstance(part, MediaPart) or part.data is None:
        return part
    return part.model_copy(update={"data": None, "sha256": media_hash(part.data)})


def lacks_media(sample: Sample) -> bool:
    """Return whether a sample that a run stored had data of media, of which only hashes are left."""
    traces = [trace for trace in (sample.trace, sample.baseline) if trace is not None]
    return any(part.sha256 for trace in traces for part in find_media(trace))
