"""Runs commands in forks of one process that has judgekit imported: importing takes most of a short command's time.

Each command has a process of its own, with the arguments, the environment, the folder and the streams of its caller, and
ends as it would have ended. Tests of how a process starts need an interpreter of their own instead.
"""

import gc
import json
import os
import runpy
import socket
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path

PROGRAMS = ("judgekit", "python")
CLIENT = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as link:
    link.connect({address!r})
    socket.send_fds(link, [json.dumps([sys.argv, dict(os.environ), os.getcwd()]).encode()], [0, 1, 2])
    link.recv(16)  # its process id
    code = os.waitstatus_to_exitcode(int(link.recv(16)))
    sys.exit(code if code >= 0 else 128 - code)  # as a shell reports a signal
"""
"""A program that hands its work to the server."""

LATE = (
    "judgekit.config_file",
    "judgekit.formats.detect",
    "judgekit.reports.html",
    "jinja2",
    "openai",
    "redis.asyncio",
    "scipy.stats",
)
"""Modules that commands import only when they need them, imported here once for all."""


def write_programs(folder: Path) -> None:
    """Write the programs whose work the server in this folder does."""
    for name in PROGRAMS:
        (folder / name).write_text(CLIENT.format(python=sys.executable, address=str(folder / "socket")))
        (folder / name).chmod(0o755)


def receive_command(folder: Path) -> list[str]:
    """Fork a process for each command, and return its words in that process only."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(folder / "socket"))
        listener.listen()
        sys.stdout.write("listening\n")
        sys.stdout.flush()
        while True:
            link, _ = listener.accept()
            if os.fork() == 0:
                break
            link.close()
            with suppress(ChildProcessError):  # when all have ended
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
    request, streams, *_ = socket.recv_fds(link, 1 << 20, 3)
    if command := os.fork():
        link.send(str(command).encode())
        _, status = os.waitpid(command, 0)
        with suppress(ConnectionError):  # when nobody waits for it
            link.send(str(status).encode())
        os._exit(0)
    link.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    words, environment, current = json.loads(request)
    os.chdir(current)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:0] = [folder for folder in environment.get("PYTHONPATH", "").split(os.pathsep) if folder]
    return words


def main() -> None:
    """Import judgekit, and serve until the process is killed."""
    judgekit = import_module("judgekit")
    for name in judgekit.__all__:
        getattr(judgekit, name)
    import_module("judgekit.cli").load_commands([])
    for name in LATE:
        with suppress(ImportError):  # what is not installed
            import_module(name)
    gc.collect()
    gc.freeze()
    folder = Path(sys.argv[1])
    write_programs(folder)
    sys.argv = receive_command(folder)
    if Path(sys.argv[0]).name == "judgekit":
        import_module("judgekit.__main__").main()
    else:
        del sys.argv[0]
        runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
