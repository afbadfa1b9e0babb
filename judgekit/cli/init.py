"""``judgekit init``: write a config for a file of recordings."""

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

_CALLS = "tool calls"
_ALWAYS = "conversations"
_ANSWERS = "a reference answer"
_SCORERS: Mapping[str, Sequence[str]] = {
    _ALWAYS: ("unfinished",),
    _CALLS: ("errors_ignored", "max_repeated_calls"),
    "reference_tool_calls": ("tool_call_f1", "tool_call_accuracy"),
    _ANSWERS: ("answer_match",),
    "prediction": ("classification",),
    "ranking": ("ndcg",),
}
"""Scorers that ask no judge, by what they need."""
_JUDGED: Mapping[str, Sequence[str]] = {
    _ALWAYS: ("agent_goal_accuracy_without_reference",),
    _CALLS: ("prompt:tool_selection",),
    "reference": ("agent_goal_accuracy_with_reference",),
    "reference_topics": ("topic_adherence",),
    "documents": ("groundedness",),
}
_GATE = """\
# Exit with code 1 unless these hold:
# gate = ["{scorer} >= 0.9", "failed <= 1%"]
"""
_JUDGE = """\
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
    formats = ", ".join(dict.fromkeys(recordings.formats.values()))
    try:
        with config.open("x", encoding="utf-8") as written:
            written.writelines(f"{part}\n" for part in _parts(file, formats, inspection))
    except FileExistsError:
        raise ConfigError(f"{config} exists: name another file with --config, or remove it first") from None
    print_line(f"wrote {config}; next: judgekit run {file}", console(stderr=True))


def _parts(file: str, formats: str, inspection: Inspection) -> Iterator[str]:
    """Yield the parts of the config: what it is for, gates, scorers without a judge, the judge, and its scorers."""
    total = inspection.conversations
    calls, references = inspection.calls["assistant"], inspection.references
    answers = 0 if calls else references["reference"] + references["references"]  # else they are outcomes
    counts = {_ALWAYS: total, _CALLS: calls, _ANSWERS: answers, **references}
    yield f"# {printable(file)}: {count_text(total, 'conversation')} in the format {formats}."
    yield "# judgekit scorers NAME shows the options of a scorer; judgekit inspect, what is in the file.\n"
    scorers = {name: need for need, names in _SCORERS.items() if counts.get(need) for name in names}
    yield _GATE.format(scorer=[*scorers][-1])
    for name, need in scorers.items():
        yield _scorer(name, need, counts[need], total)
    yield _JUDGE
    judged = {name: need for need, names in _JUDGED.items() if counts.get(need) for name in names}
    for name, need in judged.items():
        yield "\n".join(f"# {line}" for line in _scorer(name, need, counts[need], total).splitlines()) + "\n"
    if inspection.labels.counts:
        names = ", ".join(printable(name) for name in inspection.labels.counts)
        yield f"# Scores that came with the recordings: {names}. judgekit scorers imported says how to compare them."


def _scorer(name: str, need: str, count: int, total: int) -> str:
    """Return the table of a scorer, with what it needs."""
    base, _, prompt = name.partition(":")
    has = "" if need in (_ALWAYS, _CALLS) else f"  # {count:,} of {count_text(total, 'conversation')} have {need}"
    return f'[[scorers]]{has}\nname = "{base}"\n' + (f'prompt = "{prompt}"\n' if prompt else "")
