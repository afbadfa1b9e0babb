"""``judgekit scorers``, ``judgekit formats`` and ``judgekit schema``: list what is available."""

import json
import sys
from inspect import cleandoc
from typing import Annotated, Literal

import typer

from judgekit.cli import options
from judgekit.cli.app import app
from judgekit.cli.outputs import print_json
from judgekit.config import describe_scorers
from judgekit.formats.readers import READERS, installed_readers, reader_named
from judgekit.runs.rows import Row
from judgekit.terminal import console
from judgekit.traces.message import FrozenModel
from judgekit.traces.sample import Sample
from judgekit.traces.trace import Trace


@app.command()
def scorers(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The scorer to describe; by default, lists all scorers.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """List the scorers, or show the options of one and examples."""
    if name is not None:
        from judgekit.cli.scorer_help import scorer_help  # noqa: PLC0415 - loads judges

        text = "\n".join(scorer_help(name)).replace("`", "")
        console().print(text, soft_wrap=True) if not as_json else print_json({"name": name, "help": text})
        return
    listed = list(describe_scorers())
    if as_json:
        print_json([{"name": each, "description": text, "judged": judged} for each, text, judged in listed])
        return
    for each, description, judged in listed:
        text = description.replace("`", "")
        console().print(f"{each}{' (asks a judge)' if judged else ''}\n    {text}", soft_wrap=True)


@app.command()
def formats(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The format to describe; by default, lists all formats.")
    ] = None,
) -> None:
    """List the formats that can be read, or describe one."""
    if name is not None:
        reader = reader_named(name)
        described = cleandoc(sys.modules[type(reader).__module__].__doc__ or "")
        console().print(f"{reader.shape}\n\n{described}".replace("`", ""), soft_wrap=True)
        return
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
