"""Labels in the files that commands are given, which are stored with their run."""

from collections.abc import Sequence

from judgekit.analysis.labels import HumanLabel
from judgekit.analysis.stored_labels import add_labels
from judgekit.cli.outputs import print_line
from judgekit.errors import StoreError, join_limited
from judgekit.runs.results import Run
from judgekit.terminal import console


def store_labels(run: Run, labels: Sequence[HumanLabel]) -> None:
    """Add labels to the file of runs, and print what changed, or why they are not stored and count only here."""
    if not labels:
        return
    files = join_limited(dict.fromkeys(label.file for label in labels if label.file), separator=", ")
    try:
        changes = add_labels(run, labels)
    except StoreError as error:
        print_line(f"labels of {files} count only now, since they cannot be stored: {error}", console(stderr=True))
    else:
        print_line(f"{files}: {changes}", console(stderr=True))
