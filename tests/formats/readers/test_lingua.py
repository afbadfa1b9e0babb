"""A request gives one conversation, whichever provider's format it is recorded in."""

import json
from itertools import groupby
from random import Random

from judgekit import read
from judgekit.errors import TraceError
from judgekit.traces.message import MediaPart

OTHER_WORDS = {  # the recordings' question differs
    *("chatCompletionsAnthropicCacheControlParam", "codeInterpreterToolParam", "instructionsParam", "metadataParam"),
    *("parallelToolCallsDisabledParam", "promptCacheKeyParam", "reasoningSummaryParam"),
    *("responsesToolSearchInputParam", "safetyIdentifierParam", "serviceTierParam", "stopSequencesParam"),
    *("storeDisabledParam", "textFormatJsonObjectParam", "textFormatJsonSchemaParam"),
    "textFormatJsonSchemaWithDescriptionParam",
}
OTHER_KINDS = {"chatCompletionsGcsBackedVideoFileParam"}  # OpenAI's API has files instead of Gemini's videos


def parsed(text):
    """Return the parsed result, since some providers record it as JSON and others as text."""
    return json.loads(text) if text.startswith("[") else text


def normalized(sample):
    """Return what was said and called, without ids and without the way a provider splits it."""
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


def test_pairs_of_all_providers_in_one_file_are_each_read_as_they_are_alone(shared_data, tmp_path):
    pairs: list[str] = []
    alone: list[str] = []
    path = tmp_path / "alone.jsonl"
    for request in sorted((shared_data / "traces/lingua/snapshots").glob("*/*/request.json")):
        for response in sorted(request.parent.glob("response*.json")):
            row = {name: json.loads(one.read_text()) for name, one in (("request", request), ("response", response))}
            path.write_text(json.dumps(row))
            try:
                [sample] = read(path, on_error="raise")
            except (TraceError, ValueError):
                continue
            pairs.append(path.read_text())
            alone.append(dumped(sample))
    assert len(pairs) > 200
    for seed in (1, 2):
        order = Random(seed).sample(range(len(pairs)), len(pairs))  # noqa: S311 - no secret
        for name in ("mixed.jsonl", "mixed.json"):
            rows = [pairs[at] for at in order]
            (tmp_path / name).write_text("\n".join(rows) if name == "mixed.jsonl" else f"[{','.join(rows)}]")
            samples = list(read(tmp_path / name, on_error="raise"))
            assert [dumped(sample) for sample in samples] == [alone[at] for at in order]
            assert len({sample.trace.source.format for sample in samples}) == 5


def dumped(sample):
    """Return a sample without its place in the file, which names it if it has no id."""
    trace = sample.trace.model_dump(mode="json", exclude={"id", "source"})
    return json.dumps([sample.trace.source.format, trace, sample.reference], sort_keys=True)
