"""What five questions about each of 100 recorded conversations cost, by the way in which they are asked.

A server on loopback, which is a process of its own, answers what each schema asks for as briefly as it can, and bills a
token for four characters of the messages, the schema and the answer. So input is what a provider would bill to within its
tokenizer, and output, which is the same for all ways, is less than a model would write.

python benchmarks/cost.py [RECORDINGS] [--peers FOLDER], where the folder is for the environments of other tools.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

from reading import TAU2
from server import running

if TYPE_CHECKING:
    from judgekit import Judge, Run, Sample

SAMPLES = 100
QUESTIONS = (
    "agent_goal_accuracy_without_reference",
    "prompt:task_completion",
    "prompt:tool_result_use",
    "prompt:step_efficiency",
    "prompt:user_frustration",
)
PRICE: dict[str, Any] = {"input": 0.10, "output": 0.50, "flex": {"input": 0.05, "output": 0.25}}
DECISION_PRICE = {"input": 0.10, "output": 0.0}
"""US dollars for a million tokens: gpt-6-luna on 2026-11-28, with flex tier, and as a decision model."""
PEERS = ("ragas", "deepeval", "openevals")
ROOT = Path(__file__).parents[1]
BELOW = 0.9
"""The confidence below which the cascade asks the judge that explains, which is so for a fifth of the answers."""


def ask(samples: "Sequence[Sample]", judge: "Judge", careful: "Judge | None" = None) -> "Run":
    """A run that asks all questions about each sample, and a ``careful`` judge where the first is unsure."""
    from judgekit import AgentGoalAccuracyWithoutReference, PromptScorer, run
    from judgekit.scorers.selective import Selective

    def scorers(judge: "Judge") -> "list[Any]":
        prompts = [question.partition(":")[2] for question in QUESTIONS[1:]]
        return [AgentGoalAccuracyWithoutReference(judge), *(PromptScorer(name, judge) for name in prompts)]

    asked = scorers(judge)
    if careful is not None:
        asked = [Selective(first, BELOW, second) for first, second in zip(asked, scorers(careful), strict=True)]
    scored = run(samples, asked)
    assert {row.score.status for row in scored} <= {"scored", "skipped"}
    return scored


def row(way: str, scored: "Run", first: float | None = None) -> tuple[str, float]:
    """A row of the table, and the dollars."""
    calls = [call for one in scored for call in one.score.calls]
    usages = [call.usage for call in calls if call.usage]
    sent, received = sum(usage.input_tokens or 0 for usage in usages), sum(usage.output_tokens or 0 for usage in usages)
    usd = sum(call.usd_paid or 0 for call in calls)
    requests = round(sum(call.requests for call in calls))
    saved = "1.0x" if first is None else f"{first / usd:.1f}x less"
    return f"| {way} | {requests:,} | {sent:,} | {received:,} | ${usd:.4f} | {saved} |", usd


def overhead(samples: "Sequence[Sample]", alone: "Run", joint: "Run") -> float:
    """The most tokens that a joint request has for one of its recording and all its questions, each with its schema."""
    from judgekit import load_prompt

    def tokens(scored: "Run") -> Sequence[int]:
        billed = [0] * len(samples)
        for one in scored:
            billed[one.index] += sum(call.usage.input_tokens or 0 for call in one.score.calls if call.usage)
        return billed

    recordings = [(len(load_prompt("tone").system) + len(sample.trace.render())) / 4 for sample in samples]
    asked = [
        total - (len(QUESTIONS) - 1) * recording for total, recording in zip(tokens(alone), recordings, strict=True)
    ]
    return max(together / apart for together, apart in zip(tokens(joint), asked, strict=True))


def peer_row(name: str, environments: Path, url: str, samples: "Sequence[Sample]", first: float) -> str:
    """The row of another tool, which asks the same server about the same conversations."""
    from judgekit import write

    sys.path.insert(0, str(ROOT))
    from benchmarks.peers.tools import PEERS as TOOLS
    from benchmarks.peers.tools import environment, installed

    tool = next(tool for tool in TOOLS if tool.name == name)
    with tempfile.TemporaryDirectory() as folder:
        rows, messages = Path(folder) / "rows.jsonl", Path(folder) / "messages.jsonl"
        write(samples, rows, "openai-chat")
        with messages.open("w", encoding="utf-8") as file:
            for line in rows.read_text(encoding="utf-8").splitlines():
                file.write(json.dumps([plain(message) for message in json.loads(line)["messages"]]) + "\n")
        urlopen(url).read()  # noqa: S310 - on loopback; what was billed before
        python = installed(tool, environments)
        command = [str(python), "-m", "benchmarks.peers.five", tool.adapter, url, str(messages)]
        subprocess.run(command, env=environment(Path(folder)), cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    requests, sent, received = json.loads(urlopen(url).read())  # noqa: S310 - on loopback
    usd = (sent * PRICE["input"] + received * PRICE["output"]) / 1e6
    saved = f"{first / usd:.1f}x less" if usd < first else f"{usd / first:.1f}x more"
    return f"| {name} | {requests:,} | {sent:,} | {received:,} | ${usd:.4f} | {saved} |"


def plain(message: "dict[str, Any]") -> "dict[str, Any]":
    """A message with the fields that all tools know."""
    kept = {name: message[name] for name in ("role", "tool_calls", "tool_call_id") if message.get(name)}
    return {**kept, "content": message.get("content") or ""}


def main() -> None:
    from judgekit import Judge, Price, read

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recordings", type=Path, nargs="?", default=TAU2)
    parser.add_argument("--peers", type=Path, help="the folder in which environments of other tools are, or are made")
    given = parser.parse_args()
    samples = list(islice(read(given.recordings), SAMPLES))
    print(
        f"{len(samples)} conversations, {len(QUESTIONS)} questions, ${PRICE['input']} and ${PRICE['output']} a million tokens\n"
    )
    print("| way to ask | requests | input tokens | output tokens | dollars | |\n|---|---|---|---|---|---|")
    with running("billing") as url, tempfile.TemporaryDirectory() as folder:

        def judge(name: str, **settings: Any) -> "Judge":
            cache = Path(folder) / f"{name}.sqlite"
            price = DECISION_PRICE if settings.get("model") else PRICE
            return Judge(**{"model": "openai/judge", **settings}, base_url=url, price=Price(**price), cache=cache)

        alone, joint = ask(samples, judge("alone")), ask(samples, judge("together", together=True))
        line, usd = row("each question by itself", alone)
        print(line)
        print(row("each by itself, flex tier", ask(samples, judge("flex", tier="flex")), usd)[0])
        print(row("together", joint, usd)[0])
        print(row("together, flex tier", ask(samples, judge("both", tier="flex", together=True)), usd)[0])
        decider = judge("decisions", model="openai-decisions/judge")
        print(row("decision model", ask(samples, decider), usd)[0])
        first = judge("first", model="openai-decisions/judge")
        cascade = ask(samples, first, judge("careful"))
        print(row("cascade: decision model, then each by itself for a fifth", cascade, usd)[0])
        for peer in PEERS if given.peers else ():
            print(peer_row(peer, given.peers.absolute(), url, samples, usd))
    most = overhead(samples, alone, joint)
    print(f"\nA joint request has at most {most:.2f} times the tokens of the recording and all questions (goal: 1.15).")


if __name__ == "__main__":
    main()
