from collections.abc import Callable
from pathlib import Path

from agentevals.trajectory.match import create_trajectory_match_evaluator

from benchmarks.peers import work

MODES = ("strict", "unordered")


def tool_calls(*, number: int, deviating: bool) -> Callable[[], dict[str, list[float]]]:
    matches = {mode: create_trajectory_match_evaluator(trajectory_match_mode=mode) for mode in MODES}
    given = [
        (work.messages(at, made), work.messages(at, expected))
        for at, (made, expected) in enumerate(work.pairs(range(number), deviating=deviating))
    ]
    return lambda: {
        mode: [float(match(outputs=made, reference_outputs=expected)["score"]) for made, expected in given]
        for mode, match in matches.items()
    }


def memory(path: str) -> Callable[[], int]:
    """A loop by hand: there is no runner, and one conversation at a time is enough."""
    match = create_trajectory_match_evaluator(trajectory_match_mode="strict")

    def score() -> int:
        done = 0
        for record in work.parsed(Path(path)):
            expected = [(call["name"], call["args"]) for call in record["reference_tool_calls"]]
            match(outputs=record["messages"], reference_outputs=work.messages(0, expected))
            done += 1
        return done

    return score
