"""Tables of promptfoo, which have one row per test and repeat the columns of an output for each prompt and provider.

question,[echo] Answer: {{question}},Status,Score,Named Scores,Metric: tone,Grader Reason,Comment,[openai:gpt] Answer: ...
"""

from collections.abc import Sequence
from dataclasses import dataclass

from judgekit.traces.message import JsonObject

_AFTER_OUTPUT = ["Status", "Score", "Named Scores"]
_LAST = "Comment"


@dataclass(frozen=True)
class OutputColumns:
    """The places of the outputs in a row.

    Attributes:
        header: The names of all columns.
        blocks: The columns of each output, which begin with its text.
    """

    header: Sequence[str]
    blocks: Sequence[range]

    @classmethod
    def find(cls, header: Sequence[str]) -> "OutputColumns | None":
        """Return the places of the outputs; ``None`` if this is another kind of table."""
        starts = [at for at in range(len(header)) if list(header[at + 1 : at + 4]) == _AFTER_OUTPUT]
        ends = [at + 1 for at, name in enumerate(header) if name == _LAST]
        blocks = [range(start, next((end for end in ends if end > start), len(header))) for start in starts]
        return cls(header, blocks) if blocks else None

    @property
    def variables(self) -> Sequence[str]:
        """The names of the columns before the outputs: the variables of the test."""
        return self.header[: self.blocks[0].start]

    def record(self, variables: Sequence[str], cells: Sequence[str], number: int) -> JsonObject:
        """Return a row as a record."""
        last = self.blocks[-1].stop
        others: JsonObject = {name: cell for name, cell in zip(self.header[last:], cells[last:], strict=True) if cell}
        return {
            "testIdx": number,
            "vars": dict(zip(variables, cells, strict=False)),
            "outputs": [
                {
                    "header": self.header[block.start],
                    "output": cells[block.start],
                    **{self.header[at]: cells[at] for at in block[1:] if cells[at]},
                }
                for block in self.blocks
            ],
            **({"columns": others} if others else {}),
        }
