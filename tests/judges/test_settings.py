"""The settings of a judge."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from judgekit.errors import ConfigError
from judgekit.judges.judge import Judge
from judgekit.judges.openai import Price


@pytest.mark.parametrize("model", ["gpt-4.1-mini", "/gpt", "openai/", ""])
def test_a_judge_is_named_provider_and_model(model):
    with pytest.raises(ConfigError, match=r"named provider/model, as in openai/gpt-4.1-mini, found"):
        Judge(model)


@pytest.mark.parametrize(
    ("judge", "endpoint"),
    [
        ({"model": "openai/m"}, "https://api.openai.com/v1"),
        ({"model": "openai/m", "base_url": "http://localhost:8000/v1"}, "http://localhost:8000/v1"),
        ({"model": "nobody/m", "cache_mode": "replay"}, ""),
    ],
)
def test_the_endpoint_is_the_providers_unless_another_is_named(judge, endpoint):
    assert Judge(**judge).endpoint == endpoint


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({"model": "openia/m"}, "no provider of judges is called 'openia', did you mean 'openai'"),
        ({"cache": None, "cache_mode": "replay"}, "to replay, a judge needs a cache= to replay from"),
        ({"cache": Path("r.jsonl")}, r"r\.jsonl is only read: use cache_mode='replay'"),
        ({"cache": Path("r.jsonl"), "cache_mode": "refresh"}, r"r\.jsonl is only read: use cache_mode='replay'"),
        ({"base_url": "localhost:8000/v1"}, "a base_url starts with http:// or https://, found 'localhost:8000/v1'"),
    ],
)
def test_settings_that_contradict_each_other_are_refused_at_once(settings, found):
    with pytest.raises(ConfigError, match=found):
        Judge(**{"model": "openai/m"} | settings)


@pytest.mark.parametrize(
    "settings",
    [{"timeout": 0}, {"attempts": 0}, {"concurrency": 0}, {"max_requests": -1}, {"cache_mode": "of"}, {"modle": "m"}],
    ids=str,
)
def test_settings_that_make_no_sense_are_refused_by_name(settings):
    with pytest.raises(ValidationError, match=next(iter(settings))):
        Judge("openai/m", **settings)


def test_what_changes_no_verdict_is_no_part_of_what_identifies_a_judge():
    judge = Judge(
        "openai/m", params={"seed": 1}, timeout=3, max_requests=4, price=Price(2, 8), cache=None, api_key_env="K"
    )
    assert judge.model_dump() == {"model": "openai/m", "base_url": None, "params": {"seed": 1}}
