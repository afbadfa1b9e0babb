"""``judgekit show``: one sample of a run, with its conversation and its scores."""

from typing import Annotated

import typer
from pydantic import JsonValue

from judgekit.cli import options
from judgekit.cli.app import app
from judgekit.cli.inspect import rendered
from judgekit.cli.outputs import print_json
from judgekit.errors import ConfigError
from judgekit.runs.results import Run
from judgekit.runs.store import DEFAULT_RUNS_PATH
from judgekit.terminal import console, printable_lines
from judgekit.traces.message import JsonObject
from judgekit.traces.rendering import compact_json

_NOT_SHOWN = {"schema_version", "id", "trace", "baseline"}


@app.command()
def show(
    run: options.RunArgument,
    sample: Annotated[str, typer.Argument(metavar="SAMPLE", help="The id of a sample, or # and its number, as in #5.")],
    max_tokens: Annotated[
        int, options.number("Shorten the conversation to about N tokens, from its middle.", "--max-tokens", least=1)
    ] = 8000,
    as_json: options.AsJson = False,
    store: options.StorePath = DEFAULT_RUNS_PATH,
    _allow_code: options.AllowCode = False,
) -> None:
    """Show a sample of a run: its conversation and its scores."""
    stored = Run.stored(options.parse_run_number(run), store)
    number = _number(stored, sample)
    rows = list(stored.rows(numbers=[number]))
    conversation, about = "the conversation is not stored, or is damaged", {}
    for _, kept in stored.conversations(lambda each: each == number):
        about = kept.model_dump(mode="json", exclude=_NOT_SHOWN, exclude_defaults=True)
        conversation = rendered(kept.trace, max_tokens)
    scores: list[JsonValue] = [row.score.model_dump(mode="json", exclude={"calls", "aggregate"}) for row in rows]
    if as_json:
        head: JsonObject = {"run": stored.number, "sample": rows[0].sample_id, "number": number, "about": about}
        print_json({**head, "conversation": conversation, "scores": scores})
        return
    lines = [f"sample {rows[0].sample_id} (#{number}) of run {stored.number}"]
    lines += [f"{name}: {compact_json(given)}" for name, given in about.items()]
    lines += ["", conversation, ""]
    for row in rows:
        verdict = row.score.status if row.score.value is None else f"{row.score.value:.2f}"
        label = f" ({row.score.label})" if row.score.label else ""
        lines.append(f"{row.scorer}: {verdict}{label}: {row.score.reason or 'no reason given'}")
        lines += [f"  warning: {warning}" for warning in row.score.warnings]
    console().print(printable_lines("\n".join(lines)), soft_wrap=True)


def _number(run: Run, sample: str) -> int:
    """Return the number of the sample with this id, or with this number after a #."""
    ids = {row.index: row.sample_id for row in run.rows()}
    matching = [number for number, name in ids.items() if sample in (name, f"#{number}")]
    if not matching:
        raise ConfigError.unknown(f"sample of run {run.number}", sample, dict.fromkeys(ids.values()))
    if len(matching) > 1:
        numbers = ", ".join(f"#{number}" for number in matching)
        raise ConfigError(f"several samples of run {run.number} have the id {sample!r}: name one as {numbers}")
    return matching[0]
