"""Groundedness of recordings with a plant: a value changed in a sentence or in the results, or the result removed."""

import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def benchmark() -> Iterator[ModuleType]:
    """The script that plants."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT))
        yield importlib.import_module("benchmarks.groundedness")


@pytest.fixture(scope="module")
def plants(benchmark, shared_data) -> list:
    path = shared_data / "traces" / "tau2" / "gpt-4.1_airline_default_1trials.json"
    planted = list(benchmark.plants(path, seed=1, most=1))
    some = planted[:: max(1, len(planted) // 12)]
    assert {plant.way for plant in some} == {"sentence", "results", "removed"}
    return some


def test_a_judge_that_answers_rightly_gets_exactly_the_planted_verdicts(benchmark, plants):
    assert {plant.verdicts[plant.claims.index(plant.planted)] for plant in plants} == {"contradicted", "unsupported"}
    assert all(map(benchmark.gets_the_planted_verdicts, plants))


def test_invented_quotes_later_messages_and_the_agents_own_words_are_caught_every_time(benchmark, plants):
    for name in ("inventing", "late", "own"):
        caught, claims = map(
            sum, zip(*(benchmark.caught(plant, benchmark.JUDGES[name]) for plant in plants), strict=True)
        )
        assert caught == claims > 10


def test_code_finds_numbers_that_are_in_nothing_that_came_before(benchmark, plants):
    numbers = [plant for plant in plants if plant.planted.kind == "digits"]
    found = 0
    for plant in numbers:
        row = benchmark.rows_of(benchmark.judged(plant, benchmark.waving), plant.planted)[0]
        assert row["verdict"] == "supported"
        found += any(figure in plant.shown or plant.shown in figure for figure in row["numbers_missing"])
    assert found >= 0.97 * len(numbers)
