"""Ask five questions about each recorded conversation with one tool, in that tool's own environment.

python -m benchmarks.peers.five TOOL URL FILE, which is how `benchmarks/cost.py` starts it. The file has conversations as
OpenAI's chat API has them, a list of messages a line.
"""

import asyncio
import inspect
import json
import sys
from importlib import import_module
from pathlib import Path

QUESTIONS = {
    "task_completion": "How much of what the user asked for was done by the end of the conversation?",
    "tool_result_use": "Is what the agent finally tells the user faithful to what its tools returned?",
    "step_efficiency": "Did the agent get where it got without needless steps?",
    "user_frustration": "Is the user free of frustration with the agent?",
}
"""The questions beside that for the goal, in one sentence each, since the tools' own forms surround them."""
AT_ONCE = 16


def main(tool: str, url: str, file: str) -> None:
    conversations = [json.loads(line) for line in Path(file).read_text(encoding="utf-8").splitlines()]
    scores = import_module(f"benchmarks.peers.adapters.{tool}").five(url, conversations, QUESTIONS, AT_ONCE)
    if inspect.isawaitable(scores):
        scores = asyncio.run(_awaited(scores))
    print(len(scores))


async def _awaited(scores):  # noqa: ANN001, ANN202 - of another package in each environment
    return await scores


if __name__ == "__main__":
    main(*sys.argv[1:])
