"""Hashes of samples: of what they are scored against, of their recordings, and in place of the data of their media."""

import hashlib
from typing import NamedTuple, cast

from pydantic import JsonValue

from judgekit.traces.equality import canonical_json
from judgekit.traces.media import media_hash
from judgekit.traces.message import AIMessage, HumanMessage, JsonObject, MediaPart, Message, Part
from judgekit.traces.rendering import find_media
from judgekit.traces.sample import MEASUREMENT_FIELDS, Sample
from judgekit.traces.trace import Trace

_BYTES = 8
_SALT = b"judgekit roles"
"""Keeps the roles of labels independent of all other draws by hashes."""
_PRODUCED = frozenset((*MEASUREMENT_FIELDS, "results", "expected_output"))
"""Fields that are measurements of the agent, or references."""


class SampleHashes(NamedTuple):
    """Hashes of one sample, one for each kind of content; ``None`` if the content is unknown.

    Equal JSON has equal hashes, whatever the order of its keys and however its defaults are spelled.

    Attributes:
        references: The expected results, or whatever the sample is compared with, hashed with the sample's id so that
            samples with equal references cannot be recognized: ``reference``, ``references``, ``reference_tool_calls``
            (without the calls' ids and notes), ``reference_topics``, ``label``, the ``relevance`` of a ranking,
            ``fields["expected_output"]``, the messages and calls of ``baseline``, and ``task`` and ``criteria`` of the
            metadata, where benchmarks keep the task. The agent's own work is left out: the trace with its labels,
            ``prediction``, ``prediction_score``, the ``retrieved`` items of a ranking, and measured fields. So are
            ``group`` and ``domain``, which are compared separately, and all other ``metadata``.
        fields: ``documents`` and all other ``fields``. They may come with the task, or be what the agent retrieved
            and produced; their names do not tell.
        first_message: The text of the user's first message.
    """

    references: int | None = None
    fields: int | None = None
    first_message: int | None = None

    @classmethod
    def of(cls, sample: Sample, *, keeps_text: bool) -> "SampleHashes":
        """Return the hashes of a sample; without text only that of all references, as short texts can be guessed."""
        try:
            references = text_hash(canonical_json([sample.id, _references(sample)]))
            if not keeps_text:
                return cls(references)
            question = next((message.text for message in sample.trace.messages if message.role == "user"), "")
            fields = {name: value for name, value in sample.fields.items() if name not in _PRODUCED}
            rest = (
                text_hash(canonical_json([cast("JsonValue", sample.documents), fields]))
                if fields or sample.documents is not None
                else _NOTHING
            )
            return cls(references, rest, text_hash(question))
        except (TypeError, ValueError):  # a Python object, or a number too long to be written
            return cls()


def recording_key(sample: Sample) -> str:
    """Return a hash of what was said and done in a recording, the same in any file and under any id.

    It covers the messages with their tool calls, those of sub-agents, and the baseline of a pair; no references, and no
    metadata.
    """
    conversations: JsonValue = [
        _conversation(sample.trace),
        None if sample.baseline is None else _conversation(sample.baseline),
    ]
    return _key(canonical_json(conversations))


def recording_hash(sample: Sample, run_id: str) -> int | None:
    """Return a hash by which copies of a recording are recognized within a run, whose random id is part of it.

    ``None`` if the recording is empty, or cannot be hashed.
    """
    if not (sample.trace.messages or sample.trace.children or sample.baseline):
        return None
    try:
        return text_hash(f"{run_id} {recording_key(sample)}")
    except (TypeError, ValueError):  # a Python object, or a number too long to be written
        return None


def group_key(group: str) -> str:
    """Return a hash of the name of a group of samples."""
    return _key(canonical_json(["group", group]))


def _key(text: str) -> str:
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=_BYTES, person=_SALT).hexdigest()


def _references(sample: Sample) -> JsonObject:
    calls, ranking, baseline = sample.reference_tool_calls, sample.ranking, sample.baseline
    return _without_none(
        reference=sample.reference,
        references=sample.references,
        reference_tool_calls=calls
        and [
            {
                "name": call.name,
                "args": call.args,
                **_without_none(
                    compare_args=call.compare_args, requestor=call.requestor, turn=call.turn, agent=call.agent
                ),
            }
            for call in calls
        ],
        reference_topics=sample.reference_topics,
        label=sample.label,
        relevance=None if ranking is None else {**ranking.relevance},
        baseline=None if baseline is None else _conversation(baseline),
        expected_output=sample.fields.get("expected_output"),
        task=sample.metadata.get("task"),
        criteria=sample.metadata.get("criteria"),
    )


def _without_none(**values: object) -> JsonObject:
    """Return the values that are not ``None``, so that new fields of samples change no hash."""
    return {name: cast("JsonValue", value) for name, value in values.items() if value is not None}


def _conversation(trace: Trace) -> list[JsonValue]:
    messages: list[JsonValue] = [
        [message.role, message.text, [[call.name, call.args] for call in message.tool_calls]]
        if isinstance(message, AIMessage | HumanMessage)
        else [message.role, message.text]
        for message in trace.messages
    ]
    return messages + [["sub-agent", _conversation(child)] for child in trace.children]


def text_hash(text: str) -> int:
    """Return a hash of 64 bits that is the same in all processes."""
    encoded = text.encode(errors="surrogatepass")
    return int.from_bytes(hashlib.blake2b(encoded, digest_size=_BYTES).digest(), signed=True)


def hash_media(sample: Sample) -> Sample:
    """Return the sample with the hash of each image and other medium in place of its data."""
    traces = {"trace": sample.trace, "baseline": sample.baseline}
    hashed = {name: _without_data(trace) for name, trace in traces.items() if trace is not None and find_media(trace)}
    return sample.model_copy(update=hashed) if hashed else sample


def _without_data(trace: Trace) -> Trace:
    messages, children = tuple(map(_message_without_data, trace.messages)), tuple(map(_without_data, trace.children))
    return trace.model_copy(update={"messages": messages, "children": children})


def _message_without_data(message: Message) -> Message:
    if isinstance(message.content, str):
        return message
    return message.model_copy(update={"content": tuple(map(_part_without_data, message.content))})


def _part_without_data(part: Part) -> Part:
    if not isinstance(part, MediaPart) or part.data is None:
        return part
    return part.model_copy(update={"data": None, "sha256": media_hash(part.data)})


def lacks_media(sample: Sample) -> bool:
    """Return whether a sample that a run stored had data of media, of which only hashes are left."""
    traces = [trace for trace in (sample.trace, sample.baseline) if trace is not None]
    return any(part.sha256 for trace in traces for part in find_media(trace))


_NOTHING = text_hash(canonical_json([None, {}]))
