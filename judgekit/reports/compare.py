"""The samples that changed most between two runs, for a terminal, with the reasons of both runs."""

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from judgekit.analysis.compare import Comparison
from judgekit.analysis.losses import frequent_losses
from judgekit.look_alikes import tell_apart
from judgekit.terminal import WithoutTrailingBlanks, hanging_indent, printable, recorded_text


def show_changes(comparison: Comparison, limit: int, console: Console) -> None:
    """Print the samples that got worse and better most by each scorer, with the reasons of both runs."""
    for difference in comparison:
        for kind, count, find, of_kind, losses in (
            ("worse", difference.worse, comparison.worse, "new", comparison.new_losses),
            ("better", difference.better, comparison.better, "gone", comparison.gone_losses),
        ):
            if changes := find(difference.scorer, limit):
                shown = f", the {len(changes):,} that changed most" if len(changes) < count else ""
                alone = " by the judge alone" if difference.corrected else ""
                console.print(f"\n{printable(difference.scorer)}, {count:,} {kind} in B{alone}{shown}:")
                with recorded_text(console):
                    for loss in frequent_losses(losses(difference.scorer)):
                        console.print(hanging_indent(f"  {of_kind}: ", str(loss)))
                grid = Table.grid(padding=(0, 2))
                for change in changes:
                    reasons = tell_apart([row.score.reason or "no reason given" for row in change])
                    for side, row, reason in zip("AB", change, map(printable, reasons), strict=True):
                        name = printable(row.sample_id) if side == "A" else ""
                        grid.add_row(Text(name), f"{side} {row.score.value:.2f}", Text(reason))
                with recorded_text(console):
                    console.print(WithoutTrailingBlanks(Padding(grid, (0, 0, 0, 2))))
