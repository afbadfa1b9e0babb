"""judgekit's own format: a `Sample` a line, with nothing left out."""

from collections import Counter

from judgekit.formats.writers.writer import Written
from judgekit.traces.sample import Sample


class JudgekitWriter:
    """Samples as `judgekit schema` describes them; reading them gives the same samples."""

    name = "judgekit"

    def written(self, sample: Sample, index: int) -> Written:  # noqa: ARG002 - the sample has an id
        """The sample."""
        return Written(sample.model_dump_json(), Counter())
