"""``judgekit init``: write a config for a file of recordings."""

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from judgekit.cli import options
from judgekit.cli.app import app
from judgekit.cli.outputs import print_line
from judgekit.config import CONFIG_FILE
from judgekit.errors import ConfigError, count_text
from judgekit.formats.inspection import Inspection
from judgekit.formats.reading import Recordings
from judgekit.terminal import console, printable

_Scorers = Mapping[str, Sequence[str]]
_SCORERS: _Scorers = {
    "conversations": ("unfinished",),
    "tool calls": ("max_repeated_calls",),
    "tool errors": ("errors_ignored",),
    "reference_tool_calls": ("tool_call_f1", "tool_call_accuracy"),
    "answers": ("answer_match",),
    "prediction": ("classification",),
    "ranking": ("ndcg",),
}
"""Scorers that ask no judge, by what they need."""
_JUDGED: _Scorers = {
    "conversations": ("agent_goal_accuracy_without_reference",),
    "tool calls": ("prompt:tool_selection",),
    "reference": ("agent_goal_accuracy_with_reference",),
    "reference_topics": ("topic_adherence",),
    "documents": ("groundedness",),
}
_HEAD = """\
# {file}: {conversations} in the format {format}.
# judgekit scorers NAME shows the options of a scorer; judgekit inspect, what is in the file.

# Exit with code 1 unless these hold:
# gate = ["{scorer} >= 0.9", "failed <= 1%"]
"""
_JUDGE = """
# The judge of scorers that ask one, and the most it may spend in a run. Its key is read from OPENAI_API_KEY.
# judgekit doctor tests it, and judgekit run --dry-run says what a run would cost.
#
# [judges.default]
# model = "openai/gpt-6-luna"
# budget = {requests = 1000}
"""


@app.command()
def init(
    file: options.RecordingsArgument,
    format: options.Format = None,
    column: options.ColumnOption = None,
    encoding: options.Encoding = None,
    config: Annotated[Path, typer.Option(metavar="FILE", help="The config file to write.")] = Path(CONFIG_FILE),
) -> None:
    """Write a commented config for a file of recordings.

    Proposes scorers for what is in the file. Sends nothing, and overwrites no file.
    """
    recordings = Recordings(file, format, columns=options.parse_columns(column), encoding=encoding)
    inspection = Inspection()
    for sample in recordings.samples(inspection.add_problem):
        inspection.add(sample)
    inspection.must_have_any()
    total, calls, errors = inspection.conversations, inspection.calls["assistant"], inspection.results["error"]
    references = inspection.references
    answers = 0 if calls else references["reference"] + references["references"]  # else they are outcomes
    counts = {"conversations": total, "tool calls": calls, "tool errors": errors, "answers": answers, **references}
    scorers, judged = (list(_tables(kind, counts)) for kind in (_SCORERS, _JUDGED))
    head = _HEAD.format(
        file=printable(file),
        conversations=count_text(total, "conversation"),
        format=", ".join(dict.fromkeys(recordings.formats.values())),
        scorer=scorers[-1].split('"')[1],
    )
    commented = [table.replace("\n", "\n# ").removesuffix("# ") for table in judged]
    try:
        with config.open("x", encoding="utf-8") as written:
            written.write("".join((head, *scorers, _JUDGE, *commented)))
    except FileExistsError:
        raise ConfigError(f"{config} exists: name another file with --config, or remove it first") from None
    if unread := inspection.problem_count:
        print_line(f"not read: {count_text(unread, 'record')}; judgekit inspect says why", console(stderr=True))
    print_line(f"wrote {config}; next: {shlex.join(['judgekit', 'run', *sys.argv[2:]])}", console(stderr=True))


def _tables(scorers: _Scorers, counts: Mapping[str, int]) -> Iterator[str]:
    """Yield the tables of those scorers that have what they need, and how many conversations have it."""
    for need, names in scorers.items():
        for name in names if counts.get(need) else ():
            base, _, prompt = name.partition(":")
            share = f"  # {counts[need]:,} of {counts['conversations']:,} have {need}"
            has = "" if need in ("conversations", "tool calls", "tool errors") else share
            yield f'\n[[scorers]]{has}\nname = "{base}"\n' + (f'prompt = "{prompt}"\n' if prompt else "")
