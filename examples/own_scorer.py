"""Scorers of your own: a function, or a dataclass where there are options."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from judgekit import Sample, Score, arun, read, scorer
from judgekit.scoring import SyncScore
from judgekit.traces.message import ToolMessage


@scorer
def ends_with_the_agent(sample: Sample) -> tuple[float, str]:
    """1 if the agent has the last word."""
    last = sample.trace.messages[-1]
    return float(last.role == "assistant"), f"the last message is the {last.role}'s"


@dataclass(frozen=True)
class FewErrors(SyncScore):
    """1 if no tool result is an error, 0 from ``limit`` errors on. Skipped where no tool was called."""

    limit: int = 3
    name: str = "few_errors"

    async def ascore(self, sample: Sample, /) -> Score:
        results = [message for message in sample.trace.messages if isinstance(message, ToolMessage)]
        if not results:
            return Score.skipped(self.name, "no tool was called")
        errors = sum(result.is_error is True for result in results)
        value = max(0.0, 1 - errors / self.limit)
        return Score.scored(self.name, value, reason=f"{errors} of {len(results)} tool results are errors")


async def main() -> None:
    conversations = read(Path(__file__).parent / "conversations.jsonl")
    results = await arun(conversations, [ends_with_the_agent, FewErrors()])
    print(results)
    for row in results:
        print(f"{row.sample_id:25} {row.score.scorer:20} {row.score.value}  {row.score.reason}")


if __name__ == "__main__":
    asyncio.run(main())
