"""``judgekit cache``: look at stored replies, copy them between caches, delete old ones."""

import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.filesize import decimal

from judgekit.cli.app import app
from judgekit.cli.options import option
from judgekit.cli.outputs import print_line, print_written
from judgekit.errors import ConfigError, StoreError, check_choice
from judgekit.judges.cache.cassettes import Cassette, write_cassette, write_cassette_lines
from judgekit.judges.cache.replies import RecordedReply, ReplyDatabase
from judgekit.judges.cache.store import add_replies
from judgekit.judges.layers import BUDGETS_FILE, connect_redis, open_replies, open_spending
from judgekit.judges.limits.budget_client import NAMED_BUDGET_PREFIX
from judgekit.judges.redis.address import RedisAddress, cache_option
from judgekit.judges.settings import JudgeSettings
from judgekit.locations import require_local
from judgekit.terminal import console, text_table

if TYPE_CHECKING:
    from judgekit.judges.cache.redis_replies import RedisReplies

commands = typer.Typer(no_args_is_help=True, help="Show, copy and delete cached replies.")
app.add_typer(commands, name="cache")


def _local(path: str) -> Path:
    return require_local(path, "stored replies must be in a local file")


_Cache = Annotated[
    str, option("FILE|ADDRESS", "The SQLite file of the replies, a Redis address, or env:NAME for one in a variable.")
]
_Prompt = Annotated[str | None, option("NAME", "Only replies to prompts with this name, such as 'agent_goal*'.")]
_Judge = Annotated[str | None, option("NAME", "Only replies of judges with this name, such as 'openai/*'.")]
_CACHE = str(JudgeSettings.model_fields["cache"].default)


@dataclass
class _Kept:
    """The stored replies of a judge to a prompt."""

    oldest: datetime
    newest: datetime
    replies: int = 0
    tokens: int = 0
    uncounted: int = 0

    def add(self, line: RecordedReply, at: datetime) -> None:
        self.oldest, self.newest = min(self.oldest, at), max(self.newest, at)
        self.replies += 1
        usage = line.reply.usage if line.reply else None
        if usage is None or usage.input_tokens is None or usage.output_tokens is None:
            self.uncounted += 1
        else:
            self.tokens += usage.input_tokens + usage.output_tokens

    def cells(self) -> tuple[str, ...]:
        tokens = f"{self.tokens:,}" if self.uncounted < self.replies else "unknown"
        if 0 < self.uncounted < self.replies:
            tokens += f" ({self.uncounted:,} unknown)"
        return f"{self.replies:,}", tokens, f"{self.oldest:%Y-%m-%d}", f"{self.newest:%Y-%m-%d}"


@commands.command()
def stats(cache: _Cache = _CACHE) -> None:
    """Show how many replies are stored, and what they save."""
    location = cache_option(cache)
    replies = _existing(location, read_only=True)
    kept: dict[tuple[str, str], _Kept] = {}
    for line in replies.recorded():
        at = line.recorded_at or datetime.now(UTC)
        kept.setdefault((line.prompt, line.judge), _Kept(at, at)).add(line, at)
    replies.close()
    total = sum(replies.replies for replies in kept.values())
    print_line(f"{location}: {total:,} replies, {_about(location)}")
    if kept:
        rows = [(judge or "unknown", prompt, *counts.cells()) for (prompt, judge), counts in kept.items()]
        console().print(text_table(("judge", "prompt", "replies", "tokens saved", "oldest", "newest"), rows, words=2))


@commands.command()
def export(
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", parser=_local, metavar="PATH", help="The cassette to write; by default, standard output."
        ),
    ] = None,
    cache: _Cache = _CACHE,
    prompt: _Prompt = None,
    judge: _Judge = None,
) -> None:
    """Write replies as a cassette, to commit and replay.

    A cassette is JSONL, always in the same order.
    """
    location = cache_option(cache)
    if output is not None and isinstance(location, Path) and output.resolve() == location.resolve():
        raise ConfigError(f"--output {output}: this is the cache itself; name another file")
    replies = _existing(location, read_only=True)
    lines = replies.recorded(prompt or "*", judge or "*")
    if output is None:
        write_cassette_lines(sys.stdout.buffer, lines)
    else:
        print_written(output, f"{write_cassette(output, lines):,} replies")
    replies.close()


@commands.command("import")
def import_(
    file: Annotated[Path, typer.Argument(parser=_local, metavar="FILE", help="The cassette to read.")],
    cache: _Cache = _CACHE,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace cached replies that differ from the cassette's.")
    ] = False,
) -> None:
    """Copy the replies of a cassette into the cache."""
    lines = Cassette(file).recorded()
    replies = open_replies(cache_option(cache))
    added = add_replies(replies, lines, replace=replace)
    replies.close()
    notes = [f"{cache}: added {added.added:,} replies", f"{added.unchanged:,} were already there"]
    if added.conflicting:
        done = "were replaced" if replace else "differ from cached replies and were skipped (see --replace)"
        notes.append(f"{added.conflicting:,} {done}")
    print_line(", ".join(notes))


@commands.command()
def prune(
    cache: _Cache = _CACHE,
    older_than: Annotated[
        int | None, typer.Option(min=0, max=36_500, metavar="DAYS", help="Only replies older than this.")
    ] = None,
    prompt: _Prompt = None,
    judge: _Judge = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show how many there are.")] = False,
) -> None:
    """Delete replies, and free their disk space."""
    if older_than is None and prompt is None and judge is None:
        raise ConfigError("choose the replies to delete with --older-than, --prompt or --judge")
    replies = _existing(cache_option(cache))
    before = None if older_than is None else datetime.now(UTC) - timedelta(days=older_than)
    gone = replies.prune(prompt or "*", judge or "*", before, dry_run=dry_run)
    replies.close()
    print_line(f"{cache}: {gone:,} replies {'would be' if dry_run else 'were'} deleted")


@commands.command()
def budgets(
    cache: _Cache = _CACHE,
    reset: Annotated[str | None, typer.Option(metavar="NAME", help="Reset this budget to zero.")] = None,
) -> None:
    """Show the spending of named budgets, kept next to the cache or on its server."""
    location = cache_option(cache)
    path = location.with_name(BUDGETS_FILE) if isinstance(location, Path) else location
    if isinstance(path, Path) and not path.exists():
        raise StoreError(f"{path}: does not exist: no budget was used with this cache; name the cache with --cache")
    spending = open_spending(location)
    spent = {
        name.removeprefix(NAMED_BUDGET_PREFIX): amount
        for name, amount in spending.by_budget().items()
        if name.startswith(NAMED_BUDGET_PREFIX)
    }
    if reset is not None:
        check_choice("budget", reset, spent)
        spending.reset(NAMED_BUDGET_PREFIX + reset)
        print_line(f"{path}: reset {reset} to zero")
    else:
        rows = [
            (name, f"{usage.requests:,}", f"{usage.tokens:,}", f"${usage.usd:.4f}") for name, usage in spent.items()
        ]
        console().print(text_table(("budget", "requests", "tokens", "cost"), rows))
    spending.close()


def _existing(location: Path | RedisAddress, *, read_only: bool = False) -> "ReplyDatabase | RedisReplies":
    if isinstance(location, Path) and not location.exists():
        raise StoreError(f"{location}: does not exist; name the cache with --cache")
    return open_replies(location, read_only=read_only)


def _about(location: Path | RedisAddress) -> str:
    """Return the size of a file, or the settings of a server."""
    if isinstance(location, Path):
        files = (Path(f"{location}{ending}") for ending in ("", "-wal"))
        return decimal(sum(file.stat().st_size for file in files if file.exists()))
    server = connect_redis(location)
    report = server.check()
    server.close()
    return str(report)
