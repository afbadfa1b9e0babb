"""Samples that plans suggest: they are those that the option draws, and their intervals are what a run finds."""

import shlex
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from judgekit import Sample, run, scorer
from judgekit.cli.options import parse_sample
from judgekit.errors import ConfigError
from judgekit.jobs.options import RunOptions
from judgekit.jobs.suggestion import SampleDraw, SuggestedSample
from judgekit.runs.problems import ReadingProblems
from judgekit.traces.message import HumanMessage

COST = 5_000.0


def sample(number: int, group: str | None = None) -> Sample:
    return Sample.of(
        [HumanMessage(f"Hi {number}")], id=f"s{number}", domain=("shop", "bank", None)[number % 3], group=group
    )


def suggested(samples: list[Sample], **options: object) -> SuggestedSample | None:
    draw = SampleDraw(RunOptions(**options))
    for number, one in enumerate(samples):
        draw.add(number, one)
    return draw.suggest(COST)


@scorer(version="1")
async def half(sample: Sample) -> float:
    return float(sample.id[-1] in "13579")


@pytest.fixture
def file() -> Callable[[list[Sample]], str]:
    def write(samples: list[Sample]) -> str:
        Path("samples.jsonl").write_text("".join(f"{one.model_dump_json()}\n" for one in samples))
        return "samples.jsonl"

    return write


@pytest.mark.parametrize("options", [{}, {"seed": 3}, {"sample": 0.5}])
def test_the_numbers_by_domain_are_those_that_the_option_draws(file, options):
    path = file([sample(number) for number in range(3_000)])
    share = options.get("sample", 1)
    read = [one for _, one in RunOptions(file=path, **options).samples(ReadingProblems())]
    found = suggested(read, **options)
    options = {**options, "sample": found.shares}
    drawn = Counter(one.domain or "" for _, one in RunOptions(file=path, **options).samples(ReadingProblems()))
    assert (found.selected, sum(found.samples.values())) == (drawn, len(read))
    assert drawn == {name: round(0.25 * total) for name, total in Counter(one.domain or "" for one in read).items()}
    assert all(0.15 * share < one < 0.35 * share for one in found.shares.values())
    assert found.cost_usd == pytest.approx(COST * drawn.total() / len(read))
    for name, count in drawn.items():
        told = f"{name or 'no domain'} {count} of {found.samples[name]:,} (to within {98 / count**0.5:.1f} points)"
        assert told in str(found)


def test_the_options_that_are_printed_draw_the_sample(file):
    path = file([sample(number).model_copy(update={"domain": ("a b", "$(x)")[number % 2]}) for number in range(400)])
    read = [one for _, one in RunOptions(file=path).samples(ReadingProblems())]
    found = suggested(read)
    assert found.selected == {"a b": 50, "$(x)": 50}
    options = RunOptions(file=path, sample=parse_sample(shlex.split(found.option)[1::2]))
    assert Counter(one.domain for _, one in options.samples(ReadingProblems())) == found.selected


def test_with_many_domains_samples_are_drawn_from_all_together():
    made = [sample(number).model_copy(update={"domain": f"d{number % 9}"}) for number in range(900)]
    found = suggested(made)
    assert found.shares == {"": 0.2}
    drawn = [one for one in made if RunOptions(sample=0.2).is_drawn(one)]
    assert found.selected == Counter(one.domain for one in drawn)


@pytest.mark.parametrize("share", [{"shop": 0.5}, {"shop": 0.5, "": 0}])
def test_shares_by_domain_need_one_of_all_others(share):
    with pytest.raises(ConfigError, match="--sample"):
        RunOptions(file="x", sample=share).check_sampling(None)


@pytest.mark.parametrize("size", [1, 4])
def test_the_interval_is_about_that_of_the_run_whose_samples_of_a_group_are_alike(file, size):
    """Groups of one, and of four with equal scores, of which some samples are drawn."""
    made = [sample(number, f"g{number // size}") for number in range(4_000)]
    found = suggested(made)
    path = file([one.model_copy(update={"id": f"{one.id} {number // size}"}) for number, one in enumerate(made)])
    drawn = run(path, [half], sample=found.shares).summary["half"]
    margin = float(str(found).split(" points if all" if size > 1 else " points (95 %)")[0].rpartition(" ")[2])
    assert 50 * (drawn.interval.high - drawn.interval.low) == pytest.approx(margin, rel=0.1)


def test_of_many_samples_about_10000_are_enough_and_few_are_remembered():
    draw = SampleDraw(RunOptions())
    one = sample(0)
    samples = [one.model_copy(update={"id": str(number)}) for number in range(50_000)]
    for number, drawn in enumerate(samples):
        draw.add(number, drawn)
    found = draw.suggest(COST)
    assert found.shares == {"": 0.2}
    assert sum(found.selected.values()) == sum(map(RunOptions(sample=0.2).is_drawn, samples))
    assert sum(map(len, draw._first.values())) < 20_000


@pytest.mark.parametrize("options", [{"limit": 500}, {"sample": 500}])
def test_no_share_is_suggested_of_a_number_of_samples_that_the_user_chose(options):
    assert suggested([sample(number) for number in range(500)], **options) is None


def test_no_share_is_suggested_that_would_draw_nothing():
    assert suggested([sample(0)]) is None
    assert suggested([]) is None
