import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from benchmarks.peers import work
from judgekit import (
    BLEU,
    NDCG,
    ROUGE,
    AgentGoalAccuracyWithoutReference,
    AIMessage,
    AveragePrecision,
    Judge,
    Ranking,
    ReciprocalRank,
    Sample,
    Scorer,
    ToolCallAccuracy,
    ToolCallF1,
    ToolCallMatch,
    ToolMatch,
    arun,
    read,
    run,
)

ROUGES = [ROUGE(kind) for kind in ("rouge1", "rouge2", "rougeL")]
RANKINGS = [NDCG(gains="linear"), AveragePrecision(), ReciprocalRank()]
RECALL = ToolMatch(order="any", extra="allow", credit="recall", args_credit="fraction")


def samples(numbers: Sequence[int], *, deviating: bool) -> list[Sample]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "conversations.jsonl")
        work.write(path, numbers, deviating=deviating)
        return list(read(path, on_error="raise"))


async def values(scorer: Scorer, given: Sequence[Sample]) -> list[float | None]:
    return [(await scorer.ascore(sample)).value for sample in given]


async def all_values(scorers: Sequence[Scorer], given: Sequence[Sample]) -> list[float | None]:
    return [(await scorer.ascore(sample)).value for sample in given for scorer in scorers]


async def by_name(scorers: Sequence[Scorer], given: Sequence[Sample]) -> dict[str, list[float | None]]:
    return {scorer.name: await values(scorer, given) for scorer in scorers}


def tool_calls(*, number: int, deviating: bool) -> Callable[[], Awaitable[object]]:
    given = samples(range(number), deviating=deviating)
    return lambda: by_name([ToolCallAccuracy(), ToolCallF1()], given)


def other_modes(*, number: int, deviating: bool) -> Callable[[], Awaitable[object]]:
    """Score the calls in the modes of other tools."""
    given = samples(range(number), deviating=deviating)
    modes = {"strict": "exact", "unordered": "same_calls", "tool_correctness": RECALL}
    return lambda: by_name([ToolCallMatch(mode, name=name) for name, mode in modes.items()], given)


def reading(path: str) -> Callable[[], list[int]]:
    def read_all() -> list[int]:
        found = [sample.trace.messages for sample in read(path, on_error="raise")]
        called = sum(len(one.tool_calls) for messages in found for one in messages if isinstance(one, AIMessage))
        return [len(found), sum(map(len, found)), called]

    return read_all


def texts(scorers: Sequence[Scorer], words: int, number: int, turn: int) -> Callable[[], Awaitable[object]]:
    given = work.texts(words, number, turn)
    return lambda: all_values(scorers, [Sample.of([AIMessage(said)], reference=known) for said, known in given])


def rouge(words: int, number: int, turn: int) -> Callable[[], Awaitable[object]]:
    return texts(ROUGES, words, number, turn)


def bleu(words: int, number: int, turn: int) -> Callable[[], Awaitable[object]]:
    return texts([BLEU()], words, number, turn)


def ranking(number: int) -> Callable[[], Awaitable[object]]:
    found, judged = work.rankings(number)
    return lambda: all_values(
        RANKINGS,
        [Sample(id=query, ranking=Ranking([*scored.items()], judged[query])) for query, scored in found.items()],
    )


def judged(url: str, numbers: list[int], at_once: int, cache: str | None) -> Callable[[], Awaitable[object]]:
    path, mode = Path(cache or "none.sqlite"), "read_write" if cache else "off"
    judge = Judge("openai/gpt-4o-mini", base_url=url, concurrency=at_once, cache=path, cache_mode=mode)
    given = samples(numbers, deviating=False)
    return lambda: _judged(AgentGoalAccuracyWithoutReference(judge), given, at_once)


async def _judged(scorer: Scorer, given: Sequence[Sample], at_once: int) -> list[float | None]:
    return [row.score.value for row in await arun(given, [scorer], concurrency=at_once)]


def memory(path: str) -> Callable[[], int]:
    """A run that is kept in a file, as on the command line, with conversations, scores and reasons."""
    scorers = [ToolCallAccuracy(), ToolCallF1()]
    return lambda: run(path, scorers, store="runs.sqlite").summary["tool_call_f1"].counts["scored"]
