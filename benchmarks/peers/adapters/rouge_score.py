from collections.abc import Callable

from rouge_score.rouge_scorer import RougeScorer

from benchmarks.peers import work

TYPES = ["rouge1", "rouge2", "rougeL"]


def rouge(words: int, number: int, turn: int) -> Callable[[], list[float]]:
    scorer, texts = RougeScorer(TYPES), work.texts(words, number, turn)
    return lambda: [
        found[kind].fmeasure for said, known in texts for found in [scorer.score(known, said)] for kind in TYPES
    ]
