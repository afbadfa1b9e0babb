"""``judgekit scorers``, ``judgekit formats`` and ``judgekit schema``: list what is available."""

import json
from typing import Annotated, Literal

import typer

from judgekit.cli.app import app
from judgekit.config import describe_scorers
from judgekit.formats.readers import READERS, installed_readers
from judgekit.runs.rows import Row
from judgekit.terminal import console
from judgekit.traces.message import FrozenModel
from judgekit.traces.sample import Sample
from judgekit.traces.trace import Trace


@app.command()
def scorers() -> None:
    """List the scorers."""
    out = console()
    for name, description, asks in describe_scorers():
        out.print(f"{name}{' (asks a judge)' if asks else ''}\n    {description.replace('`', '')}", soft_wrap=True)


@app.command()
def formats() -> None:
    """List the formats that can be read, and what they look like."""
    for reader in (*READERS.values(), *installed_readers()):
        console().print(reader.shape, soft_wrap=True)


@app.command()
def schema(
    of: Annotated[Literal["sample", "trace", "score"], typer.Argument(help="The object to describe.")] = "sample",
) -> None:
    """Print the JSON Schema of judgekit's own formats."""
    kinds: dict[str, type[FrozenModel]] = {"sample": Sample, "trace": Trace, "score": Row}
    described = {"$schema": "https://json-schema.org/draft/2020-12/schema", **kinds[of].model_json_schema()}
    typer.echo(json.dumps(described, indent=2))
