"""A server on loopback with OpenAI's chat API, in a process of its own, that answers at once, slowly, or counting.

Scripts start it with `running`.
"""

import asyncio
import json
import re
import subprocess
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

SECONDS = 0.05
ANSWER: dict[str, object] = {
    "goals": [
        {
            "goal": "A table for four tonight.",
            "end_state": "The table is booked for 20:00.",
            "reason": "The tool confirms the booking, and the agent tells the user so.",
            "evidence": [7, 8],
            "verdict": "achieved",
        }
    ]
}
PREFERRED = {"achieved", "answered", "yes", "true", "1", "Y"}
"""Labels that the counting server chooses where it may, so that every tool finds the goal achieved."""


@contextmanager
def running(kind: str, seconds: float = SECONDS) -> Iterator[str]:
    """The base URL of a server of a kind: ``same``, ``slow`` (which takes these seconds), ``counting`` or ``billing``."""
    with subprocess.Popen([sys.executable, __file__, kind, str(seconds)], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        finally:
            server.kill()


def http(document: object) -> bytes:
    """A response of JSON."""
    said = json.dumps(document).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(said), said)


def decision(asked: Mapping[str, Any]) -> bytes:
    """The answers of a decision model as its server sends them, of which every fifth is unsure."""
    recording = json.dumps(asked["input"])
    answers: list[dict[str, object]] = []
    for question in asked["questions"]:
        is_sure = zlib.crc32(f"{recording} {question['instructions']}".encode()) % 5
        labels = [choice["value"] for choice in question["choices"]]
        chosen = next((label for label in labels if label in PREFERRED), labels[0])
        likely = [{"value": chosen, "probability": 0.95 if is_sure else 0.6}]
        answer = {"type": "choice", "name": question["name"], "choice": chosen, "confidence": 0.9}
        answers.append({**answer, "probabilities": likely})
    sent, received = (len(recording) + len(json.dumps(asked["questions"]))) // 4, len(json.dumps(answers)) // 4
    usage = {"input_tokens": sent, "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0}}
    usage |= {
        "output_tokens": received,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": sent + received,
    }
    return http({"answers": answers, "model": "judge", "usage": usage})


def completion(
    message: Mapping[str, object], prompt_tokens: int, completion_tokens: int = 60, **fields: object
) -> bytes:
    """The answer as a server sends it."""
    choice = {
        "index": 0,
        "finish_reason": "tool_calls" if "tool_calls" in message else "stop",
        "message": {"role": "assistant", "content": None, "refusal": None, **message},
    }
    return http(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": "judge",
            "choices": [choice],
            "usage": {
                "prompt_tokens": prompt_tokens,
                "completion_tokens": completion_tokens,
                "total_tokens": prompt_tokens + completion_tokens,
            },
            **fields,
        }
    )


class Server(asyncio.Protocol):
    """Says the same to every request."""

    said = completion({"content": json.dumps(ANSWER)}, 900)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.received = b""

    def data_received(self, data: bytes) -> None:
        self.received += data
        head, found, body = self.received.partition(b"\r\n\r\n")
        if found and len(body) >= int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0] or 0):
            self.received = b""
            self.reply(body)

    def reply(self, _body: bytes) -> None:
        self.write(self.said)

    def write(self, said: bytes) -> None:
        self.transport.write(said)  # type: ignore[attr-defined]


class SlowServer(Server):
    """Answers in the form that is asked for, after a while, and counts a token per character."""

    def reply(self, body: bytes) -> None:
        asked = json.loads(body)
        schema = asked["response_format"]["json_schema"]["schema"]
        said = completion(
            {"content": json.dumps(valid(schema, schema.get("$defs", {})))},
            sum(len(message["content"]) for message in asked["messages"]),
        )
        asyncio.get_running_loop().call_later(float(sys.argv[2]), self.write, said)


class CountingServer(Server):
    """Answers every form of request, and tells a GET what came since the last one."""

    counts: tuple[int, int, int] = (0, 0, 0)
    """Requests, characters of their messages, and characters of their schemas and tools."""

    def reply(self, body: bytes) -> None:
        if not body:
            said, CountingServer.counts = http(CountingServer.counts), (0, 0, 0)
            return self.write(said)
        asked = json.loads(body)
        characters = sum(len(text) for message in asked["messages"] for text in texts(message.get("content")))
        forms = [asked[name] for name in ("response_format", "tools") if name in asked]
        before = CountingServer.counts
        CountingServer.counts = (
            before[0] + 1,
            before[1] + characters,
            before[2] + sum(len(json.dumps(form)) for form in forms),
        )
        return self.write(completion(message_for(asked), characters // 4))


class BillingServer(Server):
    """Answers in the form that is asked for, and bills a token for four characters, also of the schema and the answer.

    Decisions are sure of four answers of five, a tier is granted as it is asked for, and a GET gets what was billed since
    the last one.
    """

    billed: tuple[int, int, int] = (0, 0, 0)
    """Requests, tokens of input and of output."""

    def reply(self, body: bytes) -> None:
        if not body:
            said, BillingServer.billed = http(BillingServer.billed), (0, 0, 0)
            return self.write(said)
        asked = json.loads(body)
        if "questions" in asked:
            return self.write(decision(asked))
        characters = sum(len(text) for message in asked["messages"] for text in texts(message.get("content")))
        characters += sum(len(json.dumps(tool)) for tool in asked.get("tools", ()))
        characters += len(json.dumps(asked.get("response_format", {}).get("json_schema", {}).get("schema", "")))
        message, tier = message_for(asked), asked.get("service_tier", "default")
        sent, received = characters // 4, len(str(message.get("content", message))) // 4
        before = BillingServer.billed
        BillingServer.billed = (before[0] + 1, before[1] + sent, before[2] + received)
        return self.write(completion(message, sent, received, service_tier=tier))


def texts(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    for part in content if isinstance(content, list) else ():
        yield part.get("text", "")


def message_for(asked: Mapping[str, Any]) -> Mapping[str, object]:
    """A call of the first tool, what the schema wants, or a grade in words."""
    if asked.get("tools"):
        function = asked["tools"][0]["function"]
        arguments = json.dumps(valid(function["parameters"], function["parameters"].get("$defs", {})))
        call = {"id": "call_1", "type": "function", "function": {"name": function["name"], "arguments": arguments}}
        return {"tool_calls": [call]}
    form = asked.get("response_format", {})
    if form:
        named = form.get("json_schema")
        schema = named["schema"] if named else schema_in(asked["messages"])
        return {"content": json.dumps(valid(schema, schema.get("$defs", {})))}
    if any('"score":' in text for message in asked["messages"] for text in texts(message.get("content"))):
        return {"content": '{"score": 1, "reason": "It was booked."}'}
    return {"content": "The table is booked, as the user asked.\n\nGRADE: C"}


def schema_in(messages: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The schema that a prompt holds, which asks for JSON in words."""
    text = "\n".join(part for message in messages for part in texts(message.get("content")))
    for brace in re.finditer("{", text):
        with suppress(ValueError):
            found, _ = json.JSONDecoder().raw_decode(text, brace.start())
            if "properties" in found:
                return found
    raise ValueError("there is no schema in the prompt")


def valid(schema: Mapping[str, Any], defs: Mapping[str, Any]) -> Any:
    """The least that fits a schema: the first label, message 1; of a list of named things each once."""
    if "$ref" in schema:
        return valid(defs[schema["$ref"].rpartition("/")[2]], defs)
    if "anyOf" in schema:
        return None if {"type": "null"} in schema["anyOf"] else valid(schema["anyOf"][0], defs)
    if "const" in schema or "enum" in schema:
        labels = [schema["const"]] if "const" in schema else schema["enum"]
        return next((label for label in labels if str(label) in PREFERRED), labels[0])
    if schema["type"] == "object":
        return {name: valid(inner, defs) for name, inner in schema["properties"].items()}
    if schema["type"] == "array":
        item = valid(schema["items"], defs)
        return [{**item, name: value} for name, value in named(schema["items"], defs)] or [item]
    return {"integer": 1, "number": 1, "boolean": True, "string": "It was booked."}[schema["type"]]


def named(schema: Mapping[str, Any], defs: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The names that the items of a list bear in their first property."""
    item = defs[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    first, inner = next(iter(item.get("properties", {"": {}}).items()))
    return [(first, value) for value in inner.get("enum", [inner["const"]] if "const" in inner else [])]


async def serve(protocol: type[Server]) -> None:
    server = await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


KINDS = {"same": Server, "slow": SlowServer, "counting": CountingServer, "billing": BillingServer}

if __name__ == "__main__":
    asyncio.run(serve(KINDS[sys.argv[1]]))
