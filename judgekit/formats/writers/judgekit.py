"""judgekit's own format: one `Sample` per line, complete."""

from collections import Counter

from judgekit.formats.writers.writer import WrittenLine
from judgekit.traces.sample import Sample


class JudgekitWriter:
    """A writer of samples as described by `judgekit schema`. Reading them gives the same samples."""

    name = "judgekit"

    def written(self, sample: Sample, index: int) -> WrittenLine:  # noqa: ARG002 - the sample has an id
        """Return the sample as a line."""
        return WrittenLine(sample.model_dump_json(), Counter())
