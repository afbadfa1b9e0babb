"""Requests: what makes two of them equal, and how a reply is shown back."""

import hashlib
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from judgekit.judges.request import ChatMessage, Client, Reply
from judgekit.judges.scripted import ScriptedClient

OTHER = {
    "provider": {"provider": "azure"},
    "base_url": {"base_url": "https://other.test/v1"},
    "model": {"model": "judge-2"},
    "value of a parameter": {"params": {"temperature": 1, "seed": 7}},
    "one parameter more": {"params": {"temperature": 0, "seed": 7, "top_p": 1}},
    "one parameter less": {"params": {"temperature": 0}},
    "word of the system part": {"messages": (ChatMessage("system", "You Judge."), ChatMessage("user", "Was it good?"))},
    "word of the question": {"messages": (ChatMessage("system", "You judge."), ChatMessage("user", "Was it bad?"))},
    "role": {"messages": (ChatMessage("user", "You judge."), ChatMessage("user", "Was it good?"))},
    "place of a word": {"messages": (ChatMessage("system", "You judge.Was"), ChatMessage("user", " it good?"))},
    "order of the messages": {"messages": (ChatMessage("user", "Was it good?"), ChatMessage("system", "You judge."))},
    "one message more": {
        "messages": (
            ChatMessage("system", "You judge."),
            ChatMessage("user", "Was it good?"),
            ChatMessage("assistant", ""),
        )
    },
    "one message less": {"messages": (ChatMessage("system", "You judge."),)},
    "schema_name": {"schema_name": "badness"},
    "schema": {"schema": {"type": "object", "properties": {"good": {"type": "integer"}}}},
    "repeat": {"repeat": 1},
}
SAME = {
    "order of the parameters": {"params": {"seed": 7, "temperature": 0}},
    "prompt, whose words are in the messages": {"prompt": "another@87654321"},
    "accept, which is code": {"accept": len},
    "step, by which the same is asked in another way": {"output_mode": "text"},
}


def test_a_request_that_differs_in_what_the_reply_may_depend_on_has_another_key(question):
    for changes in OTHER.values():
        assert question(**changes).key != question().key
        assert question(**changes).digests != question().digests


@pytest.mark.parametrize("changes", SAME.values(), ids=SAME)
def test_a_request_that_differs_in_nothing_else_has_the_same_key(question, changes):
    assert question(**changes).key == question().key
    assert question(**changes).digests == question().digests


turns = st.lists(
    st.builds(ChatMessage, st.sampled_from(["system", "user", "assistant"]), st.text(max_size=4)), max_size=3
)


@given(one=turns, other=turns)
def test_keys_are_equal_if_and_only_if_the_messages_are(question, one, other):
    assert (question(messages=tuple(one)).key == question(messages=tuple(other)).key) == (one == other)


def test_digests_name_the_part_in_which_two_requests_differ(question):
    changed = question(
        model="judge-2",
        params={},
        messages=(ChatMessage("system", "You judge."), ChatMessage("user", "?"), ChatMessage("user", "!")),
    )
    one, other = question().digests, changed.digests
    assert {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)} == {
        "model",
        "params",
        "messages",
        "messages[1] (user)",
        "messages[2] (user)",
    }
    assert {len(digest) for digest in one.values()} == {12}


HASHED = """{"base_url":"u","messages":2,"model":"m",\
"params":{"n":0,"seed":0,"temperature":0,"top_p":0},"provider":"openai","repeat":0,"schema":["s",{"type":"object"}]}
system 4
Sé.
user 1
?"""


def test_the_key_is_the_same_in_every_process_and_every_version(question):
    """Another key for the same question would throw away all replies that users paid for."""
    params = dict.fromkeys({"temperature", "seed", "top_p", "n"}, 0)
    messages = ChatMessage("system", "Sé."), ChatMessage("user", "?")
    asked = {"base_url": "u", "model": "m", "params": params, "messages": messages, "schema_name": "s"}
    assert question(**asked, schema={"type": "object"}).key == hashlib.sha256(HASHED.encode()).hexdigest()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", []),
        ("x" * 20_000, ["x" * 20_000]),
        (
            f"{'a' * 10_000}{'b' * 1_234_567}{'c' * 10_000}",
            [f"{'a' * 10_000}\n[... 1,234,567 characters omitted ...]\n{'c' * 10_000}"],
        ),
    ],
    ids=["nothing", "all of a long one", "the ends of a longer one"],
)
def test_no_more_is_shown_back_than_helps(question, text, shown):
    messages = question().correction_request(text, "bad").messages
    assert [turn.content for turn in messages if turn.role == "assistant"] == shown
    assert messages[-1].role == "user"


@pytest.mark.parametrize(
    ("params", "limit", "roomier"),
    [
        ({}, None, None),
        ({"max_tokens": "auto"}, None, None),
        ({"max_tokens": 100, "top_p": 1}, 100, {"max_tokens": 200, "top_p": 1}),
        ({"max_completion_tokens": 8}, 8, {"max_completion_tokens": 16}),
        ({"max_tokens": -1, "max_completion_tokens": None}, None, None),  # no limit, for some servers
        ({"max_tokens": 5, "max_completion_tokens": 8}, 8, {"max_tokens": 10, "max_completion_tokens": 16}),
    ],
    ids=str,
)
def test_a_reply_gets_twice_the_room_where_a_limit_is_set(question, params, limit, roomier):
    request = question(params=params)
    assert request.output_limit == limit
    assert request.with_doubled_limit() == (None if roomier is None else question(params=roomier, is_follow_up=True))
    assert request.params == params


def test_judgekit_s_own_limit_is_sent_by_the_server_s_name_doubled_and_no_part_of_the_key(question):
    request = question(params={"top_p": 1, "max_tokens": None}, max_output_tokens=100)
    assert request.sent_params("max_completion_tokens") == {"top_p": 1, "max_completion_tokens": 100}
    assert (request.output_limit, request.with_doubled_limit().output_limit) == (100, 200)
    assert request.key == request.with_doubled_limit().key == question(params={"top_p": 1, "max_tokens": None}).key
    assert question(params={"top_p": 1}).sent_params("max_tokens") == {"top_p": 1}


@pytest.mark.parametrize("text", ["x" * 100, "多" * 100, "👩🏾‍🚀" * 20, "\ud800", ""])
def test_the_most_tokens_are_never_below_the_bytes_that_are_sent(question, text):
    request = question(
        messages=(ChatMessage("system", text), ChatMessage("user", text)), params={"tools": ["x" * 1000]}
    )
    asked = replace(request, output_mode="text").correction_request(text, "bad")
    for one in (request, asked):
        said = sum(len(turn.content.encode(errors="replace")) for turn in one.messages)
        assert one.most_input_tokens >= said + len(json.dumps(one.schema)) + 1000


def test_tokens_are_reckoned_at_four_bytes_each(question):
    request = question(
        messages=(ChatMessage("system", "é" * 100), ChatMessage("user", "x" * 200 + "\ud800")), schema={"a": "b" * 90}
    )
    assert request.input_tokens == (200 + 200 + 1 + 100) // 4


def test_a_reply_keeps_what_the_provider_did_not_say_apart_from_zero():
    reply = Reply(text="x")
    nothing = dict.fromkeys(
        ("model", "system_fingerprint", "usage", "cost_usd", "price_list", "service_tier", "saved_usd", "logprobs")
    )
    assert json.loads(reply.model_dump_json()) == {"text": "x", "finish_reason": "stop", **nothing}
    with pytest.raises(ValidationError, match="frozen"):
        reply.text = "y"


@given(st.text(max_size=700))
def test_the_names_that_a_provider_reports_are_cut_once_and_an_empty_one_is_none(said):
    reply = Reply(text="x", model=said, system_fingerprint=said)
    assert reply.model == reply.system_fingerprint == (said[:300] or None)
    assert Reply.model_validate_json(reply.model_dump_json()) == reply


def test_whoever_completes_and_closes_is_a_client(stub):
    assert isinstance(stub(), Client)
    assert isinstance(ScriptedClient([]), Client)
    assert not isinstance(object(), Client)
