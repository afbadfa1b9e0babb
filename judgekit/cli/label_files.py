"""Labels in the files that commands are given, which are stored with their run."""

from collections.abc import Sequence

from judgekit.analysis.labels import HumanLabel
from judgekit.analysis.stored_labels import add_labels
from judgekit.cli.outputs import print_line
from judgekit.errors import StoreError, count_text, join_limited
from judgekit.runs.results import Run
from judgekit.terminal import console


def store_labels(run: Run, labels: Sequence[HumanLabel]) -> None:
    """Add labels to the file of runs, and report on stderr what changed, or why they count only in this command."""
    if not labels:
        return
    files = join_limited(dict.fromkeys(label.file for label in labels if label.file), separator=", ")
    try:
        changes = ", ".join(f"{number:,} {what}" for what, number in add_labels(run, labels).items())
    except StoreError as error:
        changes = f"not stored, so they count only now: {error}"
    print_line(f"{files}: {count_text(len(labels), 'label')}: {changes}", console(stderr=True))
