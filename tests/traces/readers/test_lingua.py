"""The same requests, recorded as different providers take them, are the same conversations."""

import json
from itertools import groupby

from judgekit import read
from judgekit.traces.message import MediaPart

OTHER_WORDS = {  # in the recordings themselves the user asks otherwise
    "chatCompletionsAnthropicCacheControlParam",
    "codeInterpreterToolParam",
    "instructionsParam",
    "metadataParam",
    "parallelToolCallsDisabledParam",
    "promptCacheKeyParam",
    "reasoningSummaryParam",
    "responsesToolSearchInputParam",
    "safetyIdentifierParam",
    "serviceTierParam",
    "stopSequencesParam",
    "storeDisabledParam",
    "textFormatJsonObjectParam",
    "textFormatJsonSchemaParam",
    "textFormatJsonSchemaWithDescriptionParam",
}
OTHER_KINDS = {"chatCompletionsGcsBackedVideoFileParam"}  # OpenAI's API has files where Gemini's has videos


def parsed(text):
    """Some providers take a result as JSON, others as its text."""
    return json.loads(text) if text.startswith("[") else text


def normalized(sample):
    """What was said and called, without ids and without how a provider splits it."""
    said = [
        (
            "system" if message.role == "developer" else message.role,
            parsed(message.text),
            [(call.name, call.args) for call in getattr(message, "tool_calls", ())],
            [part.kind for part in message.content if isinstance(part, MediaPart)],
        )
        for message in sample.trace.messages
    ]
    return json.dumps([(role, [rest for _, *rest in run]) for role, run in groupby(said, key=lambda one: one[0])])


def test_one_prompt_recorded_through_several_providers_is_one_conversation(shared_data):
    compared = 0
    differing = {}
    for folder in sorted((shared_data / "traces/lingua/snapshots").iterdir()):
        requests = sorted(folder.glob("*/request.json"))
        read_as = {normalized(next(read(path, on_error="raise"))): path.parent.name for path in requests}
        compared += len(requests) > 1
        if len(read_as) > 1:
            differing[folder.name] = read_as
    assert compared == 62
    assert differing.keys() == OTHER_WORDS | OTHER_KINDS, differing
