"""Requests: what makes two of them equal, and how a reply is shown back."""

import json
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from judgekit.judges.client import Client, Reply, Turn
from judgekit.judges.scripted import ScriptedClient

OTHER = {
    "provider": {"provider": "azure"},
    "base_url": {"base_url": "https://other.test/v1"},
    "model": {"model": "judge-2"},
    "value of a parameter": {"params": {"temperature": 1, "seed": 7}},
    "one parameter more": {"params": {"temperature": 0, "seed": 7, "top_p": 1}},
    "one parameter less": {"params": {"temperature": 0}},
    "word of the system part": {"messages": (Turn("system", "You Judge."), Turn("user", "Was it good?"))},
    "word of the question": {"messages": (Turn("system", "You judge."), Turn("user", "Was it bad?"))},
    "role": {"messages": (Turn("user", "You judge."), Turn("user", "Was it good?"))},
    "place of a word": {"messages": (Turn("system", "You judge.Was"), Turn("user", " it good?"))},
    "order of the messages": {"messages": (Turn("user", "Was it good?"), Turn("system", "You judge."))},
    "one message more": {
        "messages": (Turn("system", "You judge."), Turn("user", "Was it good?"), Turn("assistant", ""))
    },
    "one message less": {"messages": (Turn("system", "You judge."),)},
    "schema_name": {"schema_name": "badness"},
    "schema": {"schema": {"type": "object", "properties": {"good": {"type": "integer"}}}},
    "draw": {"draw": 1},
}
SAME = {
    "order of the parameters": {"params": {"seed": 7, "temperature": 0}},
    "prompt, whose words are in the messages": {"prompt": "another@87654321"},
    "accept, which is code": {"accept": len},
}


@pytest.mark.parametrize("changes", OTHER.values(), ids=OTHER)
def test_a_request_that_differs_in_what_the_reply_may_depend_on_has_another_key(question, changes):
    assert question(**changes).key != question().key
    assert question(**changes).digests != question().digests


@pytest.mark.parametrize("changes", SAME.values(), ids=SAME)
def test_a_request_that_differs_in_nothing_else_has_the_same_key(question, changes):
    assert question(**changes).key == question().key
    assert question(**changes).digests == question().digests


turns = st.lists(st.builds(Turn, st.sampled_from(["system", "user", "assistant"]), st.text(max_size=4)), max_size=3)


@given(one=turns, other=turns)
def test_keys_are_equal_if_and_only_if_the_messages_are(question, one, other):
    assert (question(messages=tuple(one)).key == question(messages=tuple(other)).key) == (one == other)


def test_digests_name_the_part_in_which_two_requests_differ(question):
    changed = question(
        model="judge-2", params={}, messages=(Turn("system", "You judge."), Turn("user", "?"), Turn("user", "!"))
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


ASK = """
from judgekit.judges.client import Request, Turn
params = {name: 0 for name in {"temperature", "seed", "top_p", "n"}}
messages = (Turn("system", "Sé."), Turn("user", "?"))
request = Request("openai", "u", "m", params, messages, "s", {"type": "object"}, "p@1", str)
print(request.key)
"""


def test_the_key_is_the_same_in_every_process_and_every_version():
    """Another key for the same question would throw away all replies that users paid for."""
    keys = [
        subprocess.run(  # noqa: S603 - this Python, with code from above
            [sys.executable, "-c", ASK],
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            cwd="/",
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    ]
    assert keys == ["8a72fe32bbfbd5a4fb5d0a7a7ad28105cced8431123c6f609c754c17938bbbfd"] * 2


def test_a_repaired_request_shows_the_reply_and_what_is_wrong_with_it(question):
    repaired = question().repaired('{"good": 1}', "good: not a boolean")
    assert repaired.messages == (
        *question().messages,
        Turn("assistant", '{"good": 1}'),
        Turn(
            "user",
            "That reply cannot be used: good: not a boolean\nAnswer the question again, with one JSON object.",
        ),
    )
    assert repaired == question(messages=repaired.messages)
    assert repaired.key != question().key


def test_a_reply_keeps_what_the_provider_did_not_say_apart_from_zero():
    reply = Reply(text="x")
    assert json.loads(reply.model_dump_json()) == {"text": "x", "model": None, "usage": None, "cost_usd": None}
    with pytest.raises(ValidationError, match="frozen"):
        reply.text = "y"


def test_whoever_completes_and_closes_is_a_client(stub):
    assert isinstance(stub(), Client)
    assert isinstance(ScriptedClient([]), Client)
    assert not isinstance(object(), Client)
