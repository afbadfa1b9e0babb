"""The measurements: each function asks the workers for the same work in turns, and makes a section of the page."""

import json
import resource
import statistics
import subprocess
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.peers import work
from benchmarks.peers.page import Row, Section
from benchmarks.peers.tools import Worker, environment

ROUNDS, FEW = 5, 3
"""Rounds, and how many there are of what takes long."""
CONVERSATIONS, READ, QUERIES, MANY = 1_000, 2_000, 1_000, 100_000
JUDGED, AT_ONCE, EQUAL = 128, 32, 50
TEXTS = {20: 200, 200: 20, 2_000: 1}
"""Words of a text, and how many pairs a round has."""
MEMORY_SECONDS = 100
"""How long a tool may take for the conversations of the memory table; slower tools get fewer."""

SCALE = (
    f"{ROUNDS} rounds, {FEW} of imports and judged samples, {CONVERSATIONS:,} conversations, {JUDGED} judged samples, "
    f"and at most {MEMORY_SECONDS} seconds per tool for memory"
)
"""How much is measured, in words."""

FOUR_DIGITS = 5e-5
"""ragas rounds its F1."""
LOOPBACK = urllib.request.build_opener(urllib.request.ProxyHandler({}))
Answer = dict[str, Any]


class Bench:
    """The workers of the tools, the server that they ask, and a folder for files."""

    def __init__(self, workers: Mapping[str, Worker], url: str, folder: Path) -> None:
        self.workers, self.url, self.folder = workers, url, folder
        self.disagreements: list[str] = []

    def agree(self, what: str, mine: Sequence[float], theirs: Sequence[float], within: float = 1e-9) -> str:
        """How many of two lists of numbers are the same; where not all of them are, this is remembered."""
        same = sum(abs(one - other) < within for one, other in zip(mine, theirs, strict=True))
        found = f"{same:,} of {len(mine):,}"
        if same < len(mine):
            self.disagreements.append(f"{what}: {found}")
        return found

    def turns(
        self, job: str, tools: Sequence[str], rounds: int, params: Callable[[int], dict[str, Any]]
    ) -> dict[str, list[Answer]]:
        """The answers of each tool, or one with its error. Round 0 warms up, and is left out."""
        print(job, end=" ", flush=True)
        found: dict[str, list[Answer]] = {name: [] for name in ("judgekit", *tools) if name in self.workers}
        failed = set[str]()
        for turn in range(rounds + 1):
            for name in [one for one in found if one not in failed]:
                answer = self.asked(name, job, params(turn))
                if "error" in answer:
                    found[name] = [answer]
                    failed.add(name)
                elif turn:
                    found[name].append(answer)
            print(".", end="", flush=True)
        print(flush=True)
        return found

    def asked(self, name: str, job: str, params: dict[str, Any]) -> Answer:
        """One answer, with what reached the server meanwhile."""
        self.counts()
        return {**self.workers[name].ask(job, **params), "counts": self.counts()}

    def counts(self) -> list[int]:
        with LOOPBACK.open(self.url) as response:
            return json.load(response)

    def stop(self) -> None:
        for worker in self.workers.values():
            worker.stop()


def middle(answers: Sequence[Answer], per: int) -> float:
    """Microseconds of CPU for one of so many."""
    return statistics.median(answer["cpu"] for answer in answers) / per * 1e6


def error(answers: Sequence[Answer]) -> str | None:
    return answers[0].get("error")


def us(figure: float) -> str:
    return f"{figure:,.1f}" if figure < 100 else f"{figure:,.0f}"


def imports(bench: Bench) -> list[Section]:
    """CPU of importing what is compared, in processes of their own."""
    print("import", end=" ", flush=True)
    ours = {worker.tool.ours for worker in bench.workers.values()}
    programs = {("judgekit", program) for program in ours} | {
        (name, program) for name, worker in bench.workers.items() for program in ("pass", worker.tool.imports)
    }
    found: dict[tuple[str, str], list[float]] = {key: [] for key in programs}
    errors: dict[str, str] = {}
    for turn in range(FEW + 1):
        for name, program in sorted(programs):
            worker = bench.workers[name]
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            done = subprocess.run(
                [str(worker.python), "-c", program],
                env=environment(worker.home),
                cwd=worker.home,
                capture_output=True,
                text=True,
                check=False,
            )
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            if done.returncode:
                errors[name] = (done.stderr.strip() or "it ended with an error").splitlines()[-1]
            if turn:
                found[name, program].append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        print(".", end="", flush=True)
    print(flush=True)
    seconds = {key: statistics.median(taken) for key, taken in found.items()}
    section = Section(
        "Import",
        ("import", "CPU s", "bare Python, s", "judgekit, s"),
    )
    for name, worker in bench.workers.items():
        if name == "judgekit":
            continue
        mine, theirs, bare = (
            seconds[key] for key in (("judgekit", worker.tool.ours), (name, worker.tool.imports), (name, "pass"))
        )
        code = f"`{worker.tool.imports}`"
        cells = [code, f"{theirs:.2f}", f"{bare:.3f}", f"{mine:.2f}"]
        if name in errors:
            section.rows.append(Row(name, [code, errors[name]]))
        else:
            section.rows.append(Row(name, cells, theirs / mine))
    return [section]


def tool_calls(bench: Bench) -> list[Section]:
    """Scores of the calls of the same conversations."""
    kinds = {
        "judgekit": "`ToolCallAccuracy`, `ToolCallF1`",
        "ragas": "`ToolCallAccuracy`, `ToolCallF1`",
        "agentevals": "trajectory matches `strict`, `unordered`",
        "deepeval": "`ToolCorrectnessMetric` with arguments",
    }
    params = {way: {"number": CONVERSATIONS, "deviating": way == "deviating"} for way in ("matching", "deviating")}
    found = {way: bench.turns("tool_calls", [*kinds], ROUNDS, lambda _, way=way: params[way]) for way in params}
    modes = bench.workers["judgekit"].ask("other_modes", **params["deviating"])["result"]
    ours = {**found["deviating"]["judgekit"][0]["result"], **modes}
    section = Section(
        "Tool calls",
        ("scores", "matching, us", "deviating, us", "same values"),
    )
    base = middle(found["matching"]["judgekit"], CONVERSATIONS)
    for name, answers in found["matching"].items():
        failed = error(answers) or error(found["deviating"][name])
        if failed:
            section.rows.append(Row(name, [kinds[name], failed]))
            continue
        taken = [middle(found[way][name], CONVERSATIONS) for way in params]
        results = found["deviating"][name][0]["result"]
        same = ", ".join(
            f"{kind}: {bench.agree(f'{name}, {kind}', ours[kind], given, FOUR_DIGITS)}"
            for kind, given in results.items()
        )
        cells = [kinds[name], *map(us, taken), "" if name == "judgekit" else same]
        section.rows.append(Row(name, cells, taken[0] / base))
    return [section]


def reading(bench: Bench) -> list[Section]:
    """One file into the tools' own messages."""
    path = bench.folder / "read.jsonl"
    work.write(path, range(READ), deviating=True)
    kinds = {
        "judgekit": "`judgekit.read`, which detects the format of each record",
        "ragas": "`json.loads`, then `MultiTurnSample` by hand",
        "inspect-ai": "`json.loads`, then `messages_from_openai` and `Sample`",
        "deepeval": "`json.loads`, then `ConversationalTestCase` by hand",
    }
    found = bench.turns("reading", [*kinds], ROUNDS, lambda _: {"path": str(path)})
    section = Section(
        "Reading",
        ("how", "us", "conversations, messages, calls"),
    )
    base = middle(found["judgekit"], READ)
    for name, answers in found.items():
        if failed := error(answers):
            section.rows.append(Row(name, [kinds[name], failed]))
            continue
        taken = middle(answers, READ)
        read = ", ".join(f"{count:,}" for count in answers[0]["result"])
        bench.agree(f"{name}, reading", found["judgekit"][0]["result"], answers[0]["result"])
        section.rows.append(Row(name, [kinds[name], us(taken), read], taken / base))
    return [section]


def texts(bench: Bench) -> list[Section]:
    """Text and ranking metrics, which agree to 1e-9."""
    section = Section(
        "Texts and rankings",
        ("metrics", "us", "judgekit, us", "equal to 1e-9"),
    )
    labels = {"rouge": ("rouge-score", "ROUGE-1, -2, -L"), "bleu": ("sacrebleu", "BLEU")}
    for job, (peer, label) in labels.items():
        for words, number in TEXTS.items():
            found = bench.turns(
                job,
                [peer],
                ROUNDS,
                lambda turn, size=(words, number): {"words": size[0], "number": size[1], "turn": turn},
            )
            section.rows += pair(bench, found, peer, f"{label} of {words:,} words", number)
    found = bench.turns("ranking", ["pytrec-eval"], ROUNDS, lambda _: {"number": QUERIES})
    section.rows += pair(bench, found, "pytrec-eval", "NDCG, AP, RR of 100 documents", QUERIES)
    return [section]


def pair(bench: Bench, found: Mapping[str, Sequence[Answer]], peer: str, label: str, number: int) -> Iterator[Row]:
    """The row of a metric that judgekit and a reference implementation both have, if that is here."""
    if peer not in found:
        return
    if failed := error(found[peer]):
        yield Row(peer, [label, failed])
        return
    mine, theirs = (middle(found[name], number) for name in ("judgekit", peer))
    same = bench.agree(f"{peer}, {label}", found["judgekit"][0]["result"], found[peer][0]["result"])
    yield Row(peer, [label, us(theirs), us(mine), same], theirs / mine, label)


JUDGMENTS = {
    "judgekit": "`AgentGoalAccuracyWithoutReference`",
    "ragas": "`AgentGoalAccuracyWithoutReference`",
    "deepeval": "`GoalAccuracyMetric`, with `evaluate`",
    "openevals": "`TASK_COMPLETION_PROMPT`",
    "autoevals": "`ClosedQA` with a criterion",
    "inspect-ai": "`model_graded_qa`, with `score`",
}
CACHES = {
    "judgekit": "a SQLite file",
    "ragas": "`DiskCacheBackend`",
    "deepeval": "`CacheConfig(use_cache=True)`",
    "openevals": "LangChain's `InMemoryCache`",
    "autoevals": "none",
    "inspect-ai": "`CachePolicy`, a file per reply",
}


def judged(bench: Bench) -> list[Section]:
    """Judged samples for the first time, again, and equal ones at once."""
    tools = list(JUDGMENTS)

    def asked(first: int, cache: str | None) -> Callable[[int], dict[str, Any]]:
        return lambda turn: {
            "url": bench.url,
            "numbers": list(range(first + turn * JUDGED, first + (turn + 1) * JUDGED)),
            "at_once": AT_ONCE,
            "cache": cache,
        }

    fresh = bench.turns("judged", tools, FEW, asked(0, None))
    requests = Section(
        "Judged samples",
        ("judgment", "us", "requests", "characters of messages", "of schemas and tools"),
    )
    base = middle(fresh["judgekit"], JUDGED)
    for name, answers in fresh.items():
        if failed := error(answers):
            requests.rows.append(Row(name, [JUDGMENTS[name], failed]))
            continue
        counts = [statistics.fmean(column) / JUDGED for column in zip(*(one["counts"] for one in answers), strict=True)]
        bench.agree(f"{name}, judged", [1] * JUDGED, answers[0]["result"])
        taken = middle(answers, JUDGED)
        cells = [JUDGMENTS[name], us(taken), f"{counts[0]:g}", *(f"{one:,.0f}" for one in counts[1:])]
        requests.rows.append(Row(name, cells, taken / base))

    with_cache = [name for name in tools if CACHES[name] != "none"]
    # the first round fills the cache with what later ones ask for
    again = bench.turns("judged", with_cache, FEW, lambda _: asked(100_000, "replies")(0))
    equal = bench.turns(
        "judged",
        with_cache,
        1,
        lambda turn: {"url": bench.url, "numbers": [200_000 + turn] * EQUAL, "at_once": EQUAL, "cache": "replies"},
    )
    cached = Section(
        "Cache",
        ("cache", "us", "requests", f"{EQUAL} equal at once"),
    )
    base = middle(again["judgekit"], JUDGED)
    for name in fresh:
        if name not in again:
            cached.rows.append(Row(name, [CACHES[name]]))
            continue
        failed = error(again[name]) or error(equal[name])
        if failed:
            cached.rows.append(Row(name, [CACHES[name], failed]))
            continue
        sent = statistics.fmean(one["counts"][0] for one in again[name]) / JUDGED
        taken = middle(again[name], JUDGED)
        cells = [CACHES[name], us(taken), f"{sent:g}", f"{equal[name][0]['counts'][0]}"]
        cached.rows.append(Row(name, cells, None if sent else taken / base))
    return [requests, cached]


def memory(bench: Bench) -> list[Section]:
    """The most memory that a process holds after it has scored a file."""
    few, many = bench.folder / "few.jsonl", bench.folder / "many.jsonl"
    work.write(few, range(500), deviating=True)
    kinds = {
        "judgekit": "`run` on the file, with a store on disk",
        "ragas": "`EvaluationDataset`, then both metrics",
        "deepeval": "a list of test cases, then `evaluate`",
        "agentevals": "a loop by hand, one conversation at a time",
    }
    section = Section(
        "Memory",
        ("how", "conversations", "peak MiB", "seconds"),
    )
    print("memory", end=" ", flush=True)
    for name, kind in kinds.items():
        if name not in bench.workers:
            continue
        worker = bench.workers[name]
        worker.stop()  # a new process, for what it holds afterwards
        for _ in range(2):  # the first one loads what it needs
            first = worker.ask("memory", path=str(few))
        if "error" not in first:
            number = min(MANY, int(500 / first["wall"] * MEMORY_SECONDS) // 100 * 100)
            work.write(many, range(number), deviating=True)
            first = worker.ask("memory", path=str(many))
        if "error" in first:
            section.rows.append(Row(name, [kind, first["error"]]))
        else:
            section.rows.append(
                Row(name, [kind, f"{first['result']:,}", f"{first['mib']:,.0f}", f"{first['wall']:.0f}"])
            )
        print(".", end="", flush=True)
    print(flush=True)
    return [section]


SECTIONS = (imports, tool_calls, reading, texts, judged, memory)
