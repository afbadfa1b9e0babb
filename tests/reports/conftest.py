"""What tests of reports share."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from judgekit import AIMessage, Run, Sample, Score, run
from judgekit.scoring import FunctionScorer, scorer

RunOf = Callable[..., Run]


@pytest.fixture
def run_of() -> RunOf:
    """Gives a function that makes a run of these scores, those of each scorer in the order of the samples."""

    def made(*given: Sequence[Score], samples: Sequence[Sample] = (), store: Path | None = None) -> Run:
        samples = samples or [Sample.of([AIMessage("Hi")], id=f"s{number}") for number in range(len(given[0]))]

        def saying(scores: Sequence[Score]) -> FunctionScorer:
            said = {id(sample): score for sample, score in zip(samples, scores, strict=True)}
            return scorer(name=scores[0].scorer)(lambda sample: said[id(sample)])

        return run(samples, [saying(scores) for scores in given], store=store)

    return made
