from collections.abc import Callable

import pytrec_eval

from benchmarks.peers import work

MEASURES = ("ndcg", "map", "recip_rank")


def ranking(number: int) -> Callable[[], list[float]]:
    found, judged = work.rankings(number)

    def score() -> list[float]:
        results = pytrec_eval.RelevanceEvaluator(judged, set(MEASURES)).evaluate(found)
        return [results[query][measure] for query in found for measure in MEASURES]

    return score
