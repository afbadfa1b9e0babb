"""Who serves models, and to whom a key goes."""

import pytest

from judgekit.errors import AuthenticationError, ConfigError
from judgekit.judges.providers.provider import PROVIDERS, get_provider


def test_an_unknown_provider_is_an_error_that_lists_the_known_ones():
    with pytest.raises(
        ConfigError,
        match=r"no judge provider is called 'openia'. Did you mean 'openai'\?.*Known: openai, litellm, openai-decisions. For your own, give",
    ):
        get_provider("openia")


OWN, URL = "MY_KEY", "http://localhost:8000/v1"


@pytest.mark.parametrize(
    ("base_url", "api_key_env", "key"),
    [
        pytest.param(None, None, "sk-provider", id="the provider's own key for the provider"),
        pytest.param(None, OWN, "sk-own", id="a named key for the provider"),
        pytest.param(URL, OWN, "sk-own", id="a named key for another server"),
        pytest.param(URL, "OPENAI_API_KEY", "sk-provider", id="the provider's key for another server, if it is named"),
        pytest.param(URL, None, "no-key", id="no key for another server"),
    ],
)
def test_a_key_goes_to_nobody_but_whom_it_is_meant_for(monkeypatch, base_url, api_key_env, key):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-provider")
    monkeypatch.setenv(OWN, " sk-own\n")  # as it comes out of a file
    assert PROVIDERS["openai"].read_key(base_url, api_key_env) == key


@pytest.mark.parametrize(
    ("base_url", "api_key_env", "key"),
    [(None, None, None), (None, OWN, "sk-own"), (URL, None, "no-key"), (URL, OWN, "sk-own")],
)
def test_a_provider_that_finds_keys_by_itself_is_given_those_that_are_named(monkeypatch, base_url, api_key_env, key):
    monkeypatch.setenv(OWN, "sk-own")
    assert PROVIDERS["litellm"].read_key(base_url, api_key_env) == key


@pytest.mark.parametrize("value", [None, "", " \n"])
@pytest.mark.parametrize(
    ("base_url", "api_key_env", "words"),
    [
        (None, None, "no key for https://api.openai.com/v1: set the environment variable OPENAI_API_KEY"),
        (None, OWN, "no key for https://api.openai.com/v1: set the environment variable MY_KEY"),
        (URL, OWN, "no key for http://localhost:8000/v1: set the environment variable MY_KEY"),
    ],
)
def test_a_missing_key_is_an_error_that_names_its_variable(monkeypatch, value, base_url, api_key_env, words):
    if value is not None:
        monkeypatch.setenv(api_key_env or "OPENAI_API_KEY", value)
    with pytest.raises(AuthenticationError, match=words):
        PROVIDERS["openai"].read_key(base_url, api_key_env)


@pytest.mark.parametrize("key", ["sk-pri\nvate", "sk-privaté", "sk-private\x00"])
def test_a_key_that_no_header_can_hold_is_an_error_that_does_not_show_it(monkeypatch, key):
    monkeypatch.setattr("os.environ", {"OPENAI_API_KEY": key})
    with pytest.raises(AuthenticationError, match="OPENAI_API_KEY") as info:
        PROVIDERS["openai"].read_key(None, None)
    assert "sk-pri" not in str(info.value)
