"""Addresses of Redis, which show no password."""

from pathlib import Path

import pytest

from judgekit.config_file import load_file
from judgekit.errors import ConfigError
from judgekit.judges.judge import Judge
from judgekit.judges.redis.address import RedisAddress, cache_option

SECRET = "correct-horse"  # noqa: S105 - what must not be seen
SECRETS = [
    f"redis://:{SECRET}@host",
    f"rediss://user:{SECRET}@host:6380/0",
    f"valkey://{SECRET}@host",
    f"unix:///run/redis.sock?password={SECRET}",
    f"redis://host?username={SECRET}",
    f"redis://user:{SECRET}/@host",
]


@pytest.mark.parametrize("url", SECRETS)
def test_a_password_in_the_clear_is_refused_and_not_shown(url, tmp_path):
    config = tmp_path / "judgekit.toml"
    config.write_text(f'[judges.default]\nmodel = "openai/x"\ncache = "{url}"\n')
    for attempt in (lambda: Judge("openai/x", cache=url), lambda: cache_option(url), lambda: load_file(config)):
        with pytest.raises(ConfigError) as info:
            attempt()
        assert SECRET not in str(info.value)
        assert "the address may not contain a user or password: put it into an environment variable" in str(info.value)
        assert 'cache = {env = "JUDGEKIT_REDIS_URL"}' in str(info.value)


@pytest.mark.parametrize(
    ("url", "read"),
    [
        ("redis://localhost", "redis://localhost"),
        ("redis://[::1]:6379/3", "redis://[::1]:6379/3"),
        ("valkey://host:1/0", "redis://host:1/0"),
        ("valkeys://host?ssl_ca_certs=/ca.pem", "rediss://host?ssl_ca_certs=/ca.pem"),
        ("unix:///run/redis.sock?db=1", "unix:///run/redis.sock?db=1"),
    ],
)
def test_an_address_is_taken_as_it_is(url, read, tmp_path):
    config = tmp_path / "judgekit.toml"
    config.write_text(f'[judges.default]\nmodel = "openai/x"\ncache = "{url}"\n')
    for cache in (Judge("openai/x", cache=url).cache, load_file(config)[0].judges["default"].cache, cache_option(url)):
        assert cache == RedisAddress(url)
        assert cache.read() == read
        assert str(cache) == url


def test_any_other_address_is_an_error():
    cases = [
        "postgres://host",
        "redis://",
        "redis://host:0",
        "redis://host:x",
        "redis://host/a",
        "unix://",
        "redis://a b",
    ]
    for url in cases:
        with pytest.raises(ConfigError, match="cache: expected a file, or an address such as redis://localhost:6379/0"):
            Judge("openai/x", cache=url)


def test_files_are_still_files():
    assert (
        Judge("openai/x", cache="folder/c.sqlite").cache == Path("folder/c.sqlite") == cache_option("folder/c.sqlite")
    )


def test_an_address_with_a_password_comes_from_a_variable_and_is_shown_nowhere(monkeypatch, tmp_path):
    config = tmp_path / "judgekit.toml"
    config.write_text('[judges.default]\nmodel = "openai/x"\ncache = {env = "MY_REDIS"}\n')
    monkeypatch.setenv("MY_REDIS", f" valkeys://user:{SECRET}@host:6380/1\n")
    judge = load_file(config)[0].judges["default"]
    assert judge.cache == RedisAddress(env="MY_REDIS") == cache_option("env:MY_REDIS")
    assert judge.cache.read() == f"rediss://user:{SECRET}@host:6380/1"
    assert str(judge.cache) == "MY_REDIS"
    assert SECRET not in f"{judge!r} {judge.model_dump_json()}"


@pytest.mark.parametrize("cache", [{"env": f"redis://:{SECRET}@h"}, {"env": 3}, {"url": "redis://h"}, {}], ids=str)
def test_a_variable_is_named_in_capitals(cache):
    with pytest.raises(
        ConfigError, match="env must name an environment variable in capitals, such as JUDGEKIT_R"
    ) as info:
        Judge("openai/x", cache=cache)
    assert SECRET not in str(info.value)


@pytest.mark.parametrize("value", ["", f"{SECRET}", f"http://:{SECRET}@host", f"redis://:{SECRET}@host:port"])
def test_a_variable_without_an_address_is_an_error_that_does_not_show_it(monkeypatch, value):
    monkeypatch.setenv("MY_REDIS", value)
    with pytest.raises(ConfigError, match="MY_REDIS") as info:
        RedisAddress(env="MY_REDIS").read()
    assert SECRET not in str(info.value)
    monkeypatch.delenv("MY_REDIS")
    with pytest.raises(ConfigError, match="set the environment variable MY_REDIS to an address such as redis://localh"):
        RedisAddress(env="MY_REDIS").read()


@pytest.mark.parametrize(
    ("url", "is_local"),
    [("redis://localhost", True), ("redis://127.0.0.1:1", True), ("unix:///a", True), ("redis://host", False)],
)
def test_offline_judges_use_a_server_on_this_machine_alone(url, is_local, redis_server):
    judge = Judge("openai/x", base_url="http://localhost:1/v1", cache=url, offline=True)
    if is_local:
        judge.check()
        return
    with pytest.raises(ConfigError, match=f"offline: the cache {url} is on another machine; set cache to a file"):
        judge.check()
