"""The options of a run: which samples, and how many are expected."""

import gzip
import json
import random
from collections import Counter

import pytest

from judgekit.jobs.options import RunOptions, _random_sample
from judgekit.runs.rows import SampleCount
from judgekit.traces.sample import Sample

SPAN = {"traceId": "a", "spanId": "b", "name": "chat", "attributes": {"gen_ai.operation.name": "chat"}}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"file": "own.jsonl"}, 5),
        ({"file": "own.jsonl", "format": "judgekit"}, 5),
        ({"file": "own.jsonl", "limit": 3}, 3),
        ({"file": "own.jsonl", "limit": 4, "sample": 2}, 2),
        ({"file": "own.jsonl", "sample": 9}, 5),
        ({"file": "folder"}, 10),
        ({"file": "spans.jsonl"}, None),
        ({"file": "own.jsonl", "format": "otel"}, None),
        ({"file": "own.jsonl.gz"}, None),
        ({"file": "broken.jsonl"}, None),
        ({"file": "unknown.jsonl"}, None),
        ({"file": "-"}, None),
        ({"file": "-", "limit": 7}, 7),
    ],
    ids=str,
)
def test_how_many_samples_there_will_be_is_known_of_lines_that_are_samples(conversations, tmp_path, options, expected):
    lines = conversations(5, "own.jsonl").read_text()
    (tmp_path / "folder").mkdir()
    for name in "ab":
        (tmp_path / "folder" / f"{name}.jsonl").write_text(lines)
    (tmp_path / "own.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    (tmp_path / "spans.jsonl").write_text(json.dumps(SPAN) + "\n")
    (tmp_path / "broken.jsonl").write_text("{\n")
    (tmp_path / "unknown.jsonl").write_text('{"x": [1]}\n')
    count = SampleCount() if expected is None else SampleCount(expected, "about")
    assert RunOptions.model_validate(options).expected_samples() == count


def test_each_sample_is_as_likely_to_be_drawn_as_any_other():
    """Of 5 samples 2 are drawn, 4,000 times: each about 1,600 times, give or take 5 standard deviations of 31."""
    samples = list(enumerate(Sample(id=str(index)) for index in range(5)))
    draws = [_random_sample(samples, 2, random.Random(seed)) for seed in range(4_000)]  # noqa: S311 - a draw, not a secret
    times = Counter(sample.id for draw in draws for _, sample in draw)
    assert times.total() == 8_000
    assert all(abs(times[str(index)] - 1_600) < 155 for index in range(5))
