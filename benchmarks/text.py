"""What texts and rankings take: ROUGE beside rouge-score, BLEU beside sacrebleu, NDCG + AP + RR beside pytrec_eval.

All in one process, of one core; each side splits the texts into words by itself. Scores are made apart, since the others
make none.

python benchmarks/text.py
"""

import asyncio
import random
import statistics
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeVar

if TYPE_CHECKING:
    from judgekit import Sample, Scorer

Data = TypeVar("Data")
Texts: TypeAlias = list[tuple[str, str]]
"""Responses and references."""

ROUNDS = 7
TYPES = ("rouge1", "rouge2", "rougeL")
SIZES = {20: 400, 200: 40, 2_000: 1}
"""Words of a text, and how many pairs are timed."""
PAIRS = 10_000
QUERIES, DOCUMENTS = 10_000, 100
WORDS = [f"{stem}{end}" for stem in ("book", "find", "cancel", "table", "flight", "refund", "hotel", "order", "seat", "agent") for end in ("", "s", "ed", "ing", "er")]  # fmt: skip


def text(draw: random.Random, length: int) -> str:
    """Words of which few are frequent, as in texts, with a full stop now and then."""
    words = draw.choices(WORDS, [1 / (rank + 1) for rank in range(len(WORDS))], k=length)
    return " ".join(f"{word}." if draw.random() < 0.1 else word for word in words)


def pairs(length: int, number: int) -> list[Texts]:
    """New texts for each round, since sacrebleu remembers those that it has split into words."""
    draw = random.Random(length)  # noqa: S311 - texts, no secrets
    return [[(text(draw, length), text(draw, length)) for _ in range(number)] for _ in range(ROUNDS)]


def side_by_side(rounds: Sequence[Data], *jobs: Callable[[Data], object]) -> list[float]:
    """Seconds of CPU that each takes for the data of a round, in turn; medians."""
    taken: list[list[float]] = [[] for _ in jobs]
    for data in rounds:
        for times, job in zip(taken, jobs, strict=True):
            started = time.process_time()
            job(data)
            times.append(time.process_time() - started)
    return [statistics.median(times) for times in taken]


def assert_equal(ours: Sequence[float], theirs: Sequence[float]) -> None:
    assert all(abs(one - other) < 1e-9 for one, other in zip(ours, theirs, strict=True))


async def score_all(scorers: "Sequence[Scorer]", samples: "Sequence[Sample]") -> None:
    """Scores with all that a run needs; reasons are made when they are looked at."""
    for sample in samples:
        for scorer in scorers:
            await scorer.ascore(sample)


def samples_of(texts: Texts) -> "list[Sample]":
    from judgekit import AIMessage, Sample

    return [Sample.of([AIMessage(said)], id=str(n), reference=known) for n, (said, known) in enumerate(texts)]


def rouge() -> None:
    from rouge_score.rouge_scorer import RougeScorer

    from judgekit import ROUGE
    from judgekit.scorers.text.rouge import rouge as overlap
    from judgekit.scorers.text.words import splitter

    theirs, split = RougeScorer(list(TYPES)), splitter("auto")
    scorers = [ROUGE(kind) for kind in TYPES]

    def other(texts: Texts) -> list[float]:
        return [
            found[kind].fmeasure for said, known in texts for found in [theirs.score(known, said)] for kind in TYPES
        ]

    def ours(texts: Texts) -> list[float]:
        found: list[float] = []
        for said, known in texts:
            response, reference = [split(said.lower())], [split(known.lower())]
            found += [overlap(kind, response, reference).share("f1") for kind in TYPES]
        return found

    print("| ROUGE-1, -2 and -L of texts of | rouge-score, us | judgekit, us | faster | three scores, us |")
    print("|---|---|---|---|---|")
    for length, number in SIZES.items():
        rounds = pairs(length, number)
        assert_equal(ours(rounds[0]), other(rounds[0]))
        both = side_by_side(rounds, other, ours)
        whole = side_by_side(
            [samples_of(texts) for texts in rounds], lambda samples: asyncio.run(score_all(scorers, samples))
        )
        slow, fast, scored = (1e6 * seconds / number for seconds in both + whole)
        print(f"| {length:,} words | {slow:,.0f} | {fast:,.0f} | {slow / fast:,.0f}x | {scored:,.0f} |")


def bleu() -> None:
    import sacrebleu

    from judgekit import BLEU, run
    from judgekit.aggregates.translation import bleu as from_counts

    scorer, sentence = BLEU(), sacrebleu.BLEU(effective_order=True)

    def other(texts: Texts) -> list[float]:
        return [sentence.sentence_score(said, [known]).score for said, known in texts]

    def ours(texts: Texts) -> list[float]:
        return [scorer.sentence(scorer.counts(said, [known])).score for said, known in texts]

    def other_corpus(texts: Texts) -> float:
        return sacrebleu.corpus_bleu([said for said, _ in texts], [[known for _, known in texts]]).score

    def corpus(texts: Texts) -> float:
        counts = [scorer.counts(said, [known]) for said, known in texts]
        return from_counts(
            [sum(column) for column in zip(*(one.correct for one in counts), strict=True)],
            [sum(column) for column in zip(*(one.total for one in counts), strict=True)],
            sum(one.response_length for one in counts),
            sum(one.reference_length for one in counts),
            "exp",
        ).score

    def of_run(samples: "list[Sample]") -> float:
        return run(samples, [scorer]).summary["bleu"].value or 0.0

    print("\n| BLEU of | sacrebleu, us | judgekit, us | ratio | with scores, us |\n|---|---|---|---|---|")
    for length, number in SIZES.items():
        rounds = pairs(length, number)
        assert_equal(ours(rounds[0]), other(rounds[0]))
        both = side_by_side(pairs(length + 1, number), other, ours)
        whole = side_by_side(
            [samples_of(texts) for texts in rounds], lambda samples: asyncio.run(score_all([scorer], samples))
        )
        theirs, own, scored = (1e6 * seconds / number for seconds in both + whole)
        print(f"| a text of {length:,} words | {theirs:,.0f} | {own:,.0f} | {own / theirs:.2f} | {scored:,.0f} |")
    rounds = pairs(20, PAIRS)
    both = side_by_side(rounds, other_corpus, corpus)
    samples = [samples_of(texts) for texts in rounds]
    whole = side_by_side(samples, of_run)
    assert_equal([corpus(rounds[0]), 100 * of_run(samples[0])], 2 * [other_corpus(rounds[0])])
    theirs, own, scored = (1e6 * seconds / PAIRS for seconds in both + whole)
    print(f"| {PAIRS:,} texts of 20 words, each | {theirs:,.0f} | {own:,.0f} | {own / theirs:.2f} | {scored:,.0f} |")


def ranking() -> None:
    import pytrec_eval

    from judgekit import NDCG, AveragePrecision, Ranking, ReciprocalRank, Sample
    from judgekit.scorers.ranking import measures

    draw = random.Random(1)  # noqa: S311 - rankings, no secrets
    found: dict[str, dict[str, float]] = {}
    judged: dict[str, dict[str, int]] = {}
    for query in range(QUERIES):
        ids = [f"d{number}" for number in draw.sample(range(1_000), DOCUMENTS)]
        # exact in 32 bits, as trec_eval has them
        found[str(query)] = {one: float(draw.randrange(1 << 20)) for one in ids}
        judged[str(query)] = {one: draw.randrange(4) for one in (*ids[:20], *(f"e{number}" for number in range(5)))}
    evaluator = pytrec_eval.RelevanceEvaluator(judged, {"ndcg", "map", "recip_rank"})

    def other(_: object) -> list[float]:
        results = evaluator.evaluate(found)
        return [results[query][name] for query in found for name in ("ndcg", "map", "recip_rank")]

    def ours(_: object) -> list[float]:
        """Both begin with scores in no order."""
        results: list[float] = []
        for query, scored in found.items():
            relevance = judged[query]
            known, grade = list(relevance.values()), relevance.get
            grades = [grade(one, 0) for _, one in sorted(zip(scored.values(), scored, strict=True), reverse=True)]
            ranks = [rank for rank, one in enumerate(grades, 1) if one >= 1]
            results += (
                measures.ndcg(grades, known, gains="linear"),
                measures.average_precision(ranks, sum(one >= 1 for one in known)),
                measures.reciprocal_rank(ranks),
            )
        return results

    def made(_: object) -> list[Ranking]:
        return [Ranking([*found[query].items()], judged[query]) for query in found]

    assert_equal(ours(None), other(None))
    scorers = [NDCG(gains="linear"), AveragePrecision(), ReciprocalRank()]
    samples = [Sample(id=query, ranking=one) for query, one in zip(found, made(None), strict=True)]
    took = side_by_side([samples] * ROUNDS, other, ours, made, lambda samples: asyncio.run(score_all(scorers, samples)))
    slow, fast, parsed, scored = (1e6 * seconds / QUERIES for seconds in took)
    print("\n| a query: | pytrec_eval, us | judgekit, us | ratio | making a Ranking, us | three scores of it, us |")
    print("|---|---|---|---|---|---|")
    print(
        f"| NDCG, AP and RR of {DOCUMENTS} documents | {slow:.1f} | {fast:.1f} | {fast / slow:.2f} | {parsed:.1f} | {scored:.1f} |"
    )


if __name__ == "__main__":
    rouge()
    bleu()
    ranking()
