"""Samples that plans suggest: they are those that the option draws, and their intervals are what a run finds."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from judgekit import Sample, run, scorer
from judgekit.jobs.options import RunOptions
from judgekit.jobs.suggestion import SampleDraw, SuggestedSample
from judgekit.runs.problems import ReadingProblems
from judgekit.traces.message import HumanMessage

COST = 5_000.0


def sample(number: int, group: str | None = None) -> Sample:
    return Sample.of([HumanMessage("Hi")], id=f"s{number}", domain=("shop", "bank", None)[number % 3], group=group)


def suggested(samples: list[Sample], **options: object) -> SuggestedSample | None:
    draw = SampleDraw(RunOptions(**options))
    for number, one in enumerate(samples):
        draw.add(number, one)
    return draw.suggest(COST)


@scorer(version="1")
def half(sample: Sample) -> float:
    return float(sample.id[-1] in "13579")


@pytest.fixture
def file() -> Callable[[list[Sample]], str]:
    def write(samples: list[Sample]) -> str:
        Path("samples.jsonl").write_text("".join(f"{one.model_dump_json()}\n" for one in samples))
        return "samples.jsonl"

    return write


@pytest.mark.parametrize("options", [{}, {"seed": 3}, {"sample_share": 0.5}])
def test_the_numbers_by_domain_are_those_that_the_option_draws(file, options):
    path = file([sample(number) for number in range(3_000)])
    share = options.get("sample_share", 1)
    read = [one for _, one in RunOptions(file=path, **options).samples(ReadingProblems())]
    found = suggested(read, **options)
    assert found.share == 20 * share
    options = {**options, "sample_share": found.share / 100}
    drawn = Counter(one.domain or "no domain" for _, one in RunOptions(file=path, **options).samples(ReadingProblems()))
    assert (found.selected, sum(found.samples.values())) == (drawn, len(read))
    assert found.cost_usd == pytest.approx(COST * drawn.total() / len(read))
    for name, count in drawn.items():
        assert f"{name} {count} of {found.samples[name]:,} (to within {98 / count**0.5:.1f} points)" in str(found)


@pytest.mark.parametrize("size", [1, 4])
def test_the_interval_is_about_that_of_the_run_whose_samples_of_a_group_are_alike(file, size):
    """Groups of one, and of four with equal scores, of which some samples are drawn."""
    made = [sample(number, f"g{number // size}") for number in range(4_000)]
    found = suggested(made)
    path = file([one.model_copy(update={"id": f"{one.id} {number // size}"}) for number, one in enumerate(made)])
    drawn = run(path, [half], sample_share=found.share / 100).summary["half"]
    margin = float(str(found).split(" points if all" if size > 1 else " points (95 %)")[0].rpartition(" ")[2])
    assert 50 * (drawn.interval.high - drawn.interval.low) == pytest.approx(margin, rel=0.1)


def test_of_many_samples_about_10000_are_enough_and_few_are_remembered():
    draw = SampleDraw(RunOptions())
    one = sample(0)
    for number in range(150_000):
        draw.add(number, one.model_copy(update={"id": str(number)}))
    found = draw.suggest(COST)
    assert found.share == 6
    assert sum(found.selected.values()) == sum(
        RunOptions(sample_share=0.06).is_drawn(RunOptions().place_of(one.model_copy(update={"id": str(number)})))
        for number in range(150_000)
    )
    assert len(draw._first) < 20_000


@pytest.mark.parametrize("options", [{"limit": 500}, {"sample": 500}])
def test_no_share_is_suggested_of_a_number_of_samples_that_the_user_chose(options):
    assert suggested([sample(number) for number in range(500)], **options) is None


def test_no_share_is_suggested_that_would_draw_nothing():
    assert suggested([sample(0)]) is None
    assert suggested([]) is None
