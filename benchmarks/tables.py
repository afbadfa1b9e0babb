"""Tables of simulations in Markdown, which a command line names."""

import argparse
from collections.abc import Callable, Sequence


def head(*columns: str) -> None:
    print(f"\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}")


def print_tables(tables: Sequence[Callable[[int], None]], description: str | None, *, runs: int) -> None:
    """Make the tables that the command line names, or all, with so many runs unless it says how many."""
    by_name = {table.__name__: table for table in tables}
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=", ".join(by_name))
    parser.add_argument("--runs", type=int, default=runs)
    given = parser.parse_args()
    if unknown := set(given.tables) - set(by_name):
        parser.error(f"expected names of {', '.join(by_name)}, found {', '.join(sorted(unknown))}")
    for name in given.tables or by_name:
        by_name[name](given.runs)
