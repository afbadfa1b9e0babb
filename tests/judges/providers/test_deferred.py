"""Clients that are created when they are needed."""

import asyncio
import json
import threading

import pytest

from judgekit.errors import ConfigError
from judgekit.judges.providers.deferred import DeferredClient
from judgekit.judges.request import Reply

RUN = """
import json, ssl, sys
from judgekit import AgentGoalAccuracyWithoutReference, AIMessage, HumanMessage, Judge, Sample, run

contexts = []
create = ssl.SSLContext.__new__
ssl.SSLContext.__new__ = staticmethod(lambda *given, **named: contexts.append(1) or create(*given, **named))
sample = Sample.of([HumanMessage("Hi"), AIMessage("Hello!")], id="1")
judge = Judge("openai/m", base_url=sys.argv[1], cache="cache.sqlite")
[row] = run([sample], [AgentGoalAccuracyWithoutReference(judge)])
print(json.dumps([row.score.value, bool(contexts), "openai" in sys.modules]))
"""


def test_a_run_whose_replies_are_cached_loads_no_http_client_and_no_tls_context(server, goal, run_python):
    server.script = [server.says({"goals": [goal | {"evidence": [1, 2]}]})]
    first, second = (run_python("-c", RUN, server.url) for _ in range(2))
    assert json.loads(first.stdout) == [1.0, True, True], first.stderr
    assert json.loads(second.stdout) == [1.0, False, False], second.stderr


def test_concurrent_requests_create_one_client_in_a_thread_which_is_closed(stub, question):
    created = []

    def connect():
        assert threading.current_thread() is not threading.main_thread()
        created.append(stub([Reply(text="{}")] * 3))
        return created[-1]

    async def main():
        client = DeferredClient(connect)
        replies = await asyncio.gather(*(client.complete(question()) for _ in range(3)))
        await client.aclose()
        return replies

    assert asyncio.run(main()) == [Reply(text="{}")] * 3
    [one] = created
    assert one.closed


def test_a_client_that_was_not_needed_is_neither_created_nor_closed():
    def connect():
        raise AssertionError

    asyncio.run(DeferredClient(connect).aclose())


def test_a_client_that_cannot_be_created_is_tried_again_with_the_next_request(stub, question):
    problems = [ConfigError("no proxy"), None]

    def connect():
        if (problem := problems.pop(0)) is not None:
            raise problem
        return stub([Reply(text="{}")])

    async def main():
        client = DeferredClient(connect)
        with pytest.raises(ConfigError, match="no proxy"):
            await client.complete(question())
        return await client.complete(question())

    assert asyncio.run(main()) == Reply(text="{}")
