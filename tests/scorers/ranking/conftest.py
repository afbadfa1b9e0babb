"""What tests of ranking scorers share."""

from collections.abc import Callable, Sequence

import pytest

from judgekit.traces.sample import Ranking, Sample


@pytest.fixture
def graded() -> Callable[..., Sample]:
    """Makes a sample of the grades at each rank (``None``: not judged) and of judged documents that were not retrieved."""

    def sample(grades: Sequence[float | None], *missed: float) -> Sample:
        relevance = {f"d{rank}": grade for rank, grade in enumerate(grades, 1) if grade is not None}
        relevance |= {f"m{index}": grade for index, grade in enumerate(missed, 1)}
        return Sample(id="one", ranking=Ranking([f"d{rank}" for rank in range(1, len(grades) + 1)], relevance))

    return sample
