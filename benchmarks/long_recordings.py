"""What a judge is shown of recordings longer than its budget: shortened, and read in parts. No judge is asked.

The recordings are failed conversations of Who&When, in which people marked the message that decided the failure.

python benchmarks/long_recordings.py FOLDER
"""

import sys
from collections.abc import Iterable, Sequence

from judgekit import Judge, PromptScorer, Sample, plan, read
from judgekit.traces.parts import LongRecording
from judgekit.traces.rendering import Passage, message_passages
from judgekit.traces.shortening import shorten_passages
from judgekit.traces.tree import Branch

BUDGETS = (4_000, 8_000, 16_000, 32_000)


def is_whole(passages: Iterable[Passage], number: object) -> bool:
    """Return whether passages show a message, and nothing of it is left out."""
    of_message = [passage for passage in passages if passage.message_number == number]
    return bool(of_message) and not any(passage.omitted or passage.last_message_number for passage in of_message)


def shown_passages(sample: Sample, long: str, budget: int) -> Sequence[Sequence[Passage]]:
    """Return the passages that each request shows whole or in part."""
    if sample.trace.render(tool_result_limit=sys.maxsize).size <= 4 * budget:
        return [message_passages(Branch(sample.trace), sys.maxsize)]
    if long == "parts":
        return [part.passages for part in LongRecording(sample.trace, budget, None).parts]
    return [shorten_passages(message_passages(Branch(sample.trace), 8_000), sample.trace, budget)]


def main() -> None:
    samples = list(read(sys.argv[1], format="who-when"))
    marked = [next(label.message for label in sample.trace.labels if label.message) for sample in samples]
    print("| tokens | | longer | requests | tokens of all | marked message whole |\n|---|---|---|---|---|---|")
    for budget in BUDGETS:
        longer = sum(sample.trace.render(tool_result_limit=sys.maxsize).size > 4 * budget for sample in samples)
        for long in ("shorten", "parts"):
            judge = Judge("openai/none", conversation_tokens=budget, long=long, cache_mode="off")
            planned = plan(samples, [PromptScorer("task_completion", judge)])
            seen = sum(
                any(is_whole(passages, number) for passages in shown_passages(sample, long, budget))
                for sample, number in zip(samples, marked, strict=True)
            )
            print(
                f"| {budget:,} | `{long}` | {longer} of {len(samples)} | {planned.requests:,} | {planned.tokens:,} "
                f"| {seen} ({seen / len(samples):.0%}) |"
            )


if __name__ == "__main__":
    main()
