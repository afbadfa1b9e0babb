"""Records that look like those of a format and are not, or could be those of several."""

import json

from judgekit.formats.readers import READERS

RECOGNIZED = {
    (): """
        {"events": []}
        {"events": [{"type": "x"}]}
        [{"author": "Ann"}]
        []
        {}
        "x"
        null
        [{"data": []}]
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}], "id": "1"}
        {"error": "Error: 400"}
        {"messages": [], "system": "x"}
        {"request": 5, "response": {"type": "message"}}
        5
        {"schema_version": 1}
        {"a": {"steps": []}}
        {"steps": [{"step_id": 1, "source": "user", "timestamp": "2026-01-01T00:00:00Z", "message": "do"}]}
        {"messages": 5}
        {"output": {"message": 5}}
        {"message": {"role": "user", "content": [{"text": "Hi"}]}}
        {"root_span_id": "r", "span_id": "s"}
        {"type": "user", "message": "x"}
        {"type": "system", "content": "x"}
        {"loglines": 5}
        [{"type": "summary"}]
        {"type": "item.completed"}
        {"type": "error", "message": "x"}
        {"contents": [[{"role": "user", "thought": "x"}]]}
        {"candidates": [{"name": "Ann"}]}
        {"type": "ai", "content": "Hi", "usage_metadata": {"input_tokens": 1}}
        {"request": {"messages": []}, "response": {"choices": []}}
        {"chosen": {"from": "gpt", "value": "a"}, "rejected": {"from": "gpt", "value": "b"}}
        {"conversation_a": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]}
        {"version": 2, "status": "ok"}
        [{"type": "message", "content": "x"}]
        [5]
        {"trace_id": "t", "span_id": "s", "type": "x"}
        {"type": ["GENERATION"], "traceId": "t"}
        {"id": "r", "experiment_id": "e", "dataset_example_id": "d", "trace_id": "t", "output": "a"}
        {"inputs": {"question": "q"}}
        {"inputs": {"question": "q"}, "outputs": {}, "messages": []}
        {"object": "chat.completion", "choices": []}
        {"messages": []}
        {"data": {"examples": []}}
        {"example_id": "e", "input": "q"}
        ["x"]
        [{"kind": "request"}]
        [{"kind": "x", "parts": [{"content": "weather?", "timestamp": "2026-01-01T00:00:00Z", "part_kind": "user-prompt"}]}]
        {"conversations": [{"role": "user", "content": "x"}]}
        {"conversations": []}
        {"history": [{"role": "user", "content": "x"}]}
        {"history": []}
        {"trajectory": []}
        {"answer_generation": "x"}
        {"tree": {}, "win": true}
        {"op_name": "f", "inputs": {}}
        {"trace_id": "t", "inputs": {}}
        {"question_ID": "a", "history": []}
        {"question_ID": "a", "history": [{"role": "human"}]}
    """,
    ("openai-responses",): """
        {"input": [{"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}], "id": "a"}
    """,
    ("rows",): """
        {"query": "x", "reference": "y"}
        {"input": "q", "output": "a"}
        {"input": "q", "output": "a", "expected": "e"}
        {"input": "q", "output": "a", "metadata": {}, "scores": 1}
        {"input": "Hi", "response": "Hello", "expected_tools": []}
        {"input": "Hi", "expected_output": "Hello"}
        {"input": [{"role": "user", "content": "Hi"}], "output": "a", "actual_output": "b"}
        {"prompt": "p", "completion": "c", "response": "r"}
        {"prompt": {"raw": "p"}, "completion": "c"}
        {"prompt": "p", "completion": null}
        {"instruction": "i", "input": {"a": 1}, "output": "o"}
        {"question": "q", "answer": "a"}
        {"id": "a", "input": "q", "output": "a"}
        {"input": "q", "expected_output": "a"}
        {"inputs": "q", "outputs": "a"}
        {"inputs": {"question": "q"}, "expectations": {"expected_response": "a"}, "outputs": {}}
        {"inputs": {"question": "q"}, "output": "a", "trace_id": "t"}
        {"inputs": {"question": "q"}, "outputs": ["a"]}
        {"model": "m", "input": "a question", "output": "an answer"}
        {"input": [{"role": "user", "content": "Hi"}], "target": "x", "output": [{"role": "user", "content": "Hi"}]}
    """,
    ("openai-chat",): """
        [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": [{"type": "text", "text": "Hi"}]}]
        {"messages": [{"role": "user", "content": "Hi"}]}
        {"messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "f", "input": {"a": 1}}]}, {"role": "tool", "content": "1", "tool_call_id": "1"}]}
        {"messages": [{"role": "user", "content": "Hi"}], "system": "x"}
        {"messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "f", "input": {"a": 1}}]}, {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u"}}]}]}
        [{"role": "user", "content": "Hi"}]
        [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]
        [{"role": "user", "content": [{"text": "Hi"}]}, {"role": "tool", "content": [{"text": "x"}]}]
        [{"role": "user", "content": [{"image": "http://a"}]}]
        {"messages": [{"role": "user", "content": "Hi"}], "scenario": "s", "turns": 3}
        {"messages": [{"role": "user", "content": "hi"}], "prompt": "p", "completion": "c"}
        {"messages": [{"role": "user", "content": "hi"}], "chosen": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}], "rejected": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "no"}]}
        {"messages": [{"id": "u", "role": "user", "content": "1+2?", "source": "input"}]}
        [{"type": "human", "role": "user", "content": "x"}]
        {"request": {"messages": [{"role": "user", "content": "Hi"}]}, "response": {"choices": []}}
        {"messages": [{"role": "user"}]}
    """,
    ("bedrock", "openai-chat"): """
        {"messages": [{"role": "user", "content": [{"text": "Hi"}]}], "system": [{"text": "Be brief"}]}
    """,
    ("openai-chat", "vercel"): """
        [{"role": "user", "parts": [{"type": "text", "text": "Hi"}]}]
    """,
    ("pydantic-ai",): """
        [{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Hi"}]}]
    """,
    ("sharegpt",): """
        {"conversation": [{"from": "human", "value": "q"}]}
    """,
    ("ragas",): """
        {"user_input": [{"type": "human", "content": "Hi", "additional_kwargs": {}, "response_metadata": {}, "name": null, "example": false}]}
    """,
    ("codex",): """
        {"timestamp": "2026", "type": "response_item", "payload": {}, "id": "a"}
    """,
    ("anthropic", "openai-chat"): """
        {"messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "f", "input": {}}]}]}
        [{"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "f", "input": {}}]}]
    """,
    ("gemini", "openai-chat"): """
        [{"role": "user", "parts": [{"text": "Hi"}]}]
    """,
    ("openinference",): """
        {"trace_id": "t", "span_id": "s", "attributes": {"openinference.span.kind": "LLM", "gen_ai.system": "x"}}
    """,
    ("openai-chat", "otel"): """
        [{"role": "user", "parts": [{"type": "text", "content": "Hi"}]}]
        [{"role": "assistant", "parts": [{"type": "tool_call", "name": "f"}]}]
    """,
}
"""Documents, one a line, by the formats that recognize them."""


def test_a_document_is_recognized_by_the_readers_of_its_format_alone():
    for formats, lines in RECOGNIZED.items():
        for document in map(json.loads, lines.split("\n")[1:-1]):
            assert {name for name, reader in READERS.items() if reader.recognizes(document)} == {*formats}, document
