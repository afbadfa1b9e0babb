"""The files and functions of judgekit that two ways walk through: no clock, so every machine counts the same.

One way is `judgekit run FILE --scorer tool_call_f1`, from `main()` to its end; the other one is a judged sample, from
`ascore` through a request to a server on loopback to its score. Counted are named functions: no module bodies, classes,
comprehensions or lambdas. All readers' answers whether they recognize a record count as one file and one function.

python benchmarks/walks.py           prints a table
python benchmarks/walks.py --names   and every function
"""

import asyncio
import contextlib
import inspect
import os
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from types import CodeType, FrameType

from server import running

import judgekit

PACKAGE = Path(judgekit.__file__).parent
ROOT = Path(__file__).parent.parent
READERS = "formats/readers"
RECOGNIZES = "recognizes"


def walk(way: Callable[[], object]) -> Mapping[str, set[str]]:
    """The functions of judgekit, by file, that a way calls on any of its threads."""
    codes: set[CodeType | str] = set()

    def profile(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            codes.add(RECOGNIZES if is_recognition(frame) else frame.f_code)

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        way()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    functions = defaultdict(set)
    for code in tuple(codes):
        if isinstance(code, str):
            functions[READERS].add(code)
            continue
        path = Path(code.co_filename)
        if path.is_relative_to(PACKAGE) and code.co_flags & inspect.CO_OPTIMIZED and not code.co_name.startswith("<"):
            functions[str(path.relative_to(PACKAGE))].add(f"{code.co_qualname}:{code.co_firstlineno}")
    return functions


def is_recognition(frame: FrameType | None) -> bool:
    """Whether a call is part of a reader's answer whether it recognizes a record."""
    while frame is not None:
        if frame.f_code.co_name == RECOGNIZES and f"/{READERS}/" in frame.f_code.co_filename:
            return True
        frame = frame.f_back
    return False


def run() -> None:
    """A run of the example conversations, as the command line starts it."""
    from judgekit.cli import main

    arguments = ("run", str(ROOT / "examples/conversations.jsonl"), "--scorer", "tool_call_f1")
    sys.argv = ["judgekit", *arguments]
    with Path(os.devnull).open("w") as none, contextlib.redirect_stdout(none), contextlib.suppress(SystemExit):
        main()


def judged(url: str) -> Callable[[], object]:
    """A sample that a prompt scorer judges, as the first one of its judge."""
    import openai  # noqa: F401 - it takes seconds, in which claims would be renewed

    scorer = judgekit.PromptScorer("tone", judgekit.Judge("openai/judge", base_url=url, cache=Path("replies.sqlite")))
    sample = next(iter(judgekit.read(ROOT / "examples/conversations.jsonl")))
    return lambda: asyncio.run(scorer.ascore(sample))


def main() -> None:
    """Print the table."""
    names_functions = "--names" in sys.argv
    os.environ["OPENAI_API_KEY"] = "unused"
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), running("counting") as url:
        walks = {"judgekit run": walk(run), "a judged sample": walk(judged(url))}
    print("| way | files | functions |\n|---|---|---|")
    for way, functions in walks.items():
        print(f"| {way} | {len(functions)} | {sum(map(len, functions.values()))} |")
        if names_functions:
            for file, names in sorted(functions.items()):
                print(f"  {file} {len(names)}: {' '.join(sorted(names))}")


if __name__ == "__main__":
    main()
