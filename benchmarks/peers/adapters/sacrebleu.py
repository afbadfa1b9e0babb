from collections.abc import Callable

from sacrebleu.metrics import BLEU

from benchmarks.peers import work


def bleu(words: int, number: int, turn: int) -> Callable[[], list[float]]:
    metric, texts = BLEU(effective_order=True), work.texts(words, number, turn)
    return lambda: [metric.sentence_score(said, [known]).score / 100 for said, known in texts]
