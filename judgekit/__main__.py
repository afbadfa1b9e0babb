"""The command line's entry point. It imports little, so that Ctrl-C ends it without a traceback while the rest is imported."""

import sys

if __name__ == "__main__" and not sys.flags.safe_path:
    del sys.path[0]  # the working directory, which python -m puts there

import os
import signal
from importlib import import_module


def main() -> None:
    """Run the command line."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # and not one that ignores it
        signal.signal(signal.SIGINT, _end)
    cli = import_module("judgekit.cli")
    cli.load_commands(sys.argv[1:])
    signal.signal(signal.SIGINT, before)
    cli.main()


def _end(*_: object) -> None:
    os._exit(128 + signal.SIGINT)


if __name__ == "__main__":
    main()
