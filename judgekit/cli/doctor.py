"""``judgekit doctor``: test each judge with a short question."""

import asyncio
import os
from collections.abc import Mapping
from datetime import UTC, date, datetime

import typer
from pydantic_core import to_jsonable_python

from judgekit.cli import options
from judgekit.cli.app import app, warn_of_other_owners
from judgekit.cli.outputs import print_json
from judgekit.config import CONFIG_FILE, Config
from judgekit.errors import ConfigError, count_text
from judgekit.judges.doctor import JudgeDiagnosis, diagnose
from judgekit.judges.judge import Judge
from judgekit.runs.answers import UNREPORTED, quote_name
from judgekit.terminal import console, printable_lines, text_table

_YES = {True: "yes", False: "no"}
_NEAR = 90
"""The days before its shutdown in which a model should be replaced."""


@app.command()
def doctor(
    judge: options.JudgeName = None,
    config: options.ConfigFile = None,
    as_json: options.AsJson = False,
    offline: options.Offline = False,
) -> None:
    """Test each judge with a short question.

    Tests all judges of the config, unless one is named, and reports when its model shuts down, if known. Exit code 0: every judge gave the right answer; 1: one did not.
    """
    settings = Config(config, judge, os.environ, offline=offline)
    judges = settings.selected_judges()
    if not judges:
        raise ConfigError(f"there is no judge to test: name one with --judge, or in {CONFIG_FILE}")
    warn_of_other_owners()
    diagnoses = asyncio.run(_examine(judges))
    if as_json:
        listed = [{"judge": name, "model": judges[name].model, "diagnosis": each} for name, each in diagnoses.items()]
        print_json(to_jsonable_python(listed))
    else:
        _show(judges, diagnoses)
    if any(diagnosis.problem for diagnosis in diagnoses.values()):
        raise typer.Exit(1)


def _show(judges: Mapping[str, Judge], diagnoses: Mapping[str, JudgeDiagnosis]) -> None:
    console().print(
        text_table(
            ("judge", "model", "key", "reached", "answers", "JSON by", "logprobs", "tokens", "cost", "seconds"),
            [(name, judges[name].model, *_cells(diagnosis)) for name, diagnosis in diagnoses.items()],
            words=6,
        )
    )
    for name, diagnosis in diagnoses.items():
        if text := diagnosis.problem or _reported(diagnosis):
            console().print(printable_lines(f"{name}: {text}"), soft_wrap=True)
        if diagnosis.shutdown_date is not None:
            text = _shutdown(judges[name].model.partition("/")[2], diagnosis.shutdown_date)
            console().print(printable_lines(f"{name}: {text}"), soft_wrap=True)


async def _examine(judges: Mapping[str, Judge]) -> Mapping[str, JudgeDiagnosis]:
    diagnoses = await asyncio.gather(*map(diagnose, judges.values()))
    return dict(zip(judges, diagnoses, strict=True))


def _cells(diagnosis: JudgeDiagnosis) -> tuple[str, ...]:
    state = (diagnosis.key, _YES[diagnosis.is_reachable], _YES[not diagnosis.problem])
    if diagnosis.seconds is None:
        return (*state, "", "", "", "", "")
    used = diagnosis.usage
    tokens = "unknown" if used is None else f"{used.input_tokens or 0} in, {used.output_tokens or 0} out"
    cost = "unknown" if diagnosis.cost_usd is None else f"${diagnosis.cost_usd:.6f}"
    return (*state, diagnosis.output_mode or "", _YES[diagnosis.logprobs], tokens, cost, f"{diagnosis.seconds:.2f}")


def _reported(diagnosis: JudgeDiagnosis) -> str:
    prices = f"; prices: {diagnosis.price_list}" if diagnosis.price_list else ""
    if diagnosis.model is None:
        return f"{UNREPORTED}{prices}"
    fingerprint = (
        f", with the system fingerprint {quote_name(diagnosis.system_fingerprint)}"
        if diagnosis.system_fingerprint
        else ""
    )
    return f"the provider reports the model {quote_name(diagnosis.model)}{fingerprint}{prices}"


def _shutdown(model: str, day: date) -> str:
    days = (day - datetime.now(UTC).date()).days
    if days < 0:
        return f"{model} was to shut down on {day}: choose another model"
    when = "today" if days == 0 else f"in {count_text(days, 'day')}"
    advice = ": choose another model" if days <= _NEAR else ""
    return f"{model} shuts down on {day}, {when}{advice}"
