"""After a prompt or an example changed: gives each handwritten reply the key of the request that it answers.

The key of a reply is the hash of the request, so that a changed word is noticed. Look at the replies first: are they
still what a careful judge would say?
"""

import asyncio
import json
from pathlib import Path

from judgekit import (
    AgentGoalAccuracyWithoutReference,
    AgentGoalAccuracyWithReference,
    FailureAnalysis,
    Judge,
    ToolCallAccuracy,
    ToolCallF1,
    TopicAdherence,
    arun,
    attempt,
    read,
)
from judgekit.judges.cache.replies import RecordedReply
from judgekit.judges.request import Reply, Request

HERE = Path(__file__).parent
REPLIES = HERE / "replies.jsonl"


class Listener:
    """Answers nothing and remembers what it was asked."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    async def complete(self, request: Request, /) -> Reply:
        self.requests.append(request)
        return Reply(text="{}")

    async def aclose(self) -> None: ...


async def main() -> None:
    about, *lines = [
        RecordedReply.model_validate_json(line) for line in REPLIES.read_text(encoding="utf-8").splitlines()
    ]
    replies = {(line.sample, line.prompt.partition("@")[0]): line.reply for line in lines}
    written = [about]
    samples = list(read(HERE / "conversations.jsonl"))
    for sample in samples:
        for kind in (AgentGoalAccuracyWithReference, AgentGoalAccuracyWithoutReference, TopicAdherence):
            listener = Listener()
            await attempt(kind(Judge("demo/handwritten", client=listener, cache_mode="off")), sample)
            for request in listener.requests[:1]:
                reply = replies[sample.id, request.prompt.partition("@")[0]]
                written.append(
                    RecordedReply(
                        key=request.key, digests=request.digests, prompt=request.prompt, sample=sample.id, reply=reply
                    )
                )
    # An analysis of failures is shown the other scores, which are replayed with the keys from above.
    write(written)
    replayed, listener = Judge("demo/handwritten", cache=REPLIES, cache_mode="replay"), Listener()
    scorers = [
        *(ToolCallAccuracy(), ToolCallF1(), TopicAdherence(replayed)),
        *(AgentGoalAccuracyWithReference(replayed), AgentGoalAccuracyWithoutReference(replayed)),
        FailureAnalysis(Judge("demo/handwritten", client=listener, cache_mode="off")),
    ]
    for sample in samples:
        listener.requests.clear()
        await arun([sample], scorers)
        for request in listener.requests[:1]:
            reply = replies[sample.id, "failure_analysis"]
            written.append(
                RecordedReply(
                    key=request.key, digests=request.digests, prompt=request.prompt, sample=sample.id, reply=reply
                )
            )
    write(written)
    print(f"{len(written) - 1} replies in {REPLIES.name}")


def write(replies: list[RecordedReply]) -> None:
    text = "".join(json.dumps(line.model_dump(exclude_unset=True), ensure_ascii=False) + "\n" for line in replies)
    REPLIES.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
