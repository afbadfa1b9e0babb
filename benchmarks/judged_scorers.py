"""Requests and prompt characters that each judged scorer takes for a sample, and how fast samples are judged.

A server on loopback, which is a process of its own, takes 50 ms over each request, answers what its schema asks for,
and counts each character of the prompt as a token. The samples are the conversations of the demo, with everything that
a prompt may want.

python benchmarks/judged_scorers.py
"""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from server import SECONDS, running

if TYPE_CHECKING:
    from judgekit import Judge, Sample, Score, Scorer

AT_ONCE = 32
ROUNDS = 7
SAMPLES = 1_024
CRITERIA = {
    "correct_participants": "Are the right people booked for?",
    "correct_time": "Is the booking for the time that the user asked for?",
    "correct_price": "Did the user agree to the price before the booking?",
    "alternatives": "Did the agent offer other choices where the first one was not to be had?",
    "clear_explanation": "Did the agent explain what it did so that the user could follow?",
}


def samples(number: int, first: int = 0) -> "Iterator[Sample]":
    """The conversations of the demo over and over, each time in other words."""
    from judgekit import HumanMessage, read
    from judgekit.traces.recording import ToolDefinition

    held = list(read(Path(__file__).parents[1] / "examples" / "conversations.jsonl"))
    for at in range(first, first + number):
        sample = held[at % len(held)]
        called = sorted({call.name for message in sample.trace.messages for call in getattr(message, "tool_calls", ())})
        opening = HumanMessage(f"Hello, this is guest {at}.")
        trace = sample.trace.model_copy(
            update={
                "messages": (opening, *sample.trace.messages),
                "tools": tuple(ToolDefinition(name, description=f"To {name}.") for name in called),
            }
        )
        yield sample.model_copy(
            update={
                "id": f"{sample.id}-{at}",
                "trace": trace,
                "baseline": trace.model_copy(update={"messages": trace.messages[:-1]}),
                "reference": sample.reference or "All that the user asked for is booked.",
                "reference_topics": sample.reference_topics or ("travel", "bookings"),
                "documents": tuple(message.text for message in sample.trace.messages if message.role == "tool"),
                "fields": {"state": "booked", "guest": at},
            }
        )


def judges(url: str, cache: Path) -> "Sequence[Judge]":
    from judgekit import Judge

    return [Judge(f"openai/{name}", base_url=url, cache=cache, concurrency=AT_ONCE) for name in ("a", "b", "c")]


def judged_scorers(judges: "Sequence[Judge]") -> "Sequence[Scorer]":
    from judgekit import (
        AgentGoalAccuracyWithoutReference,
        AgentGoalAccuracyWithReference,
        PromptScorer,
        Repeat,
        TopicAdherence,
    )
    from judgekit.judges.prompt_file import shipped_prompts
    from judgekit.scorers.criteria import WeightedCriteria
    from judgekit.scorers.pairwise import Pairwise
    from judgekit.scorers.panel import Panel

    judge = judges[0]
    weights = dict.fromkeys(CRITERIA, 0.2)
    return [
        AgentGoalAccuracyWithReference(judge),
        AgentGoalAccuracyWithoutReference(judge),
        TopicAdherence(judge),
        *(PromptScorer(prompt, judge) for prompt in shipped_prompts() if prompt.scale),
        WeightedCriteria(weights, CRITERIA, judge),
        WeightedCriteria(weights, CRITERIA, judge, separate_requests=True, name="weighted_criteria, each"),
        Pairwise("Which agent did what the user asked for?", judge),
        Panel([AgentGoalAccuracyWithoutReference(one) for one in judges], name="panel of 3"),
        Repeat(AgentGoalAccuracyWithoutReference(judge), 3, name="repeat x3"),
    ]


def row(scorer: "Scorer", held: "Sequence[Sample]", scores: "Sequence[Score]") -> str:
    """Requests and characters a sample, and the most that any request took of what is allowed for it."""
    from judgekit.judges.inputs import PROMPT_INPUTS, RenderOptions

    prompt = scorer.prompts[0]  # type: ignore[attr-defined]
    holes = (*prompt.inputs, *prompt.optional)
    requests, characters, rendered, limits = [], [], [], []
    for sample, score in zip(held, scores, strict=True):
        assert score.status != "failed", f"{scorer.name}: {score.reason}"
        given = sum(len(PROMPT_INPUTS[hole].text(sample, RenderOptions())) for hole in holes)
        requests.append(len(score.calls))
        characters.append(sum(call.usage.input_tokens for call in score.calls if call.usage))
        rendered.append(given * len(score.calls))
        limits.append(rendered[-1] * 1.3 + 2_500 * len(score.calls))
    most = max(used / limit for used, limit in zip(characters, limits, strict=True))
    means = " | ".join(f"{statistics.fmean(figures):,.0f}" for figures in (requests, characters, rendered, limits))
    return f"| {scorer.name} | {means} | {most:.0%} |"


async def rate(scorer: "Scorer", first: int) -> float:
    """Samples a second."""
    from judgekit import arun

    held = list(samples(SAMPLES + AT_ONCE, first))
    await arun(held[SAMPLES:], [scorer], concurrency=AT_ONCE)  # connects, and loads the prompt
    began = time.perf_counter()
    run = await arun(held[:SAMPLES], [scorer], concurrency=AT_ONCE)
    taken = time.perf_counter() - began
    assert {(one.score.status, len(one.score.calls)) for one in run} == {("scored", 1)}
    return SAMPLES / taken


def main() -> None:
    from judgekit import AgentGoalAccuracyWithoutReference, TopicAdherence, run

    with running("slow") as url, tempfile.TemporaryDirectory() as folder:
        scorers = judged_scorers(judges(url, Path(folder) / "each.sqlite"))
        held = list(samples(14))
        print("| scorer | requests | prompt characters | of rendered inputs | allowed | used at most |")
        print("|---|---|---|---|---|---|")
        for scorer in scorers:
            print(row(scorer, held, [one.score for one in run(held, [scorer])]), flush=True)
        limit = AT_ONCE / SECONDS
        print(f"\n| scorer | samples a second | of {limit:.0f} |\n|---|---|---|")
        judge = judges(url, Path(folder) / "rate.sqlite")[0]
        for fast in (TopicAdherence(judge), AgentGoalAccuracyWithoutReference(judge)):
            rates = [asyncio.run(rate(fast, turn * (SAMPLES + AT_ONCE))) for turn in range(ROUNDS)]
            middle = statistics.median(rates)
            print(f"| {fast.name} | {middle:.0f} | {middle / limit:.0%} |", flush=True)


if __name__ == "__main__":
    main()
