"""The settings of a judge."""

import inspect
import re
import traceback
from pathlib import Path

import pytest

from judgekit.errors import ConfigError
from judgekit.judges.judge import Judge
from judgekit.judges.limits.budget import Budget
from judgekit.judges.prompt_file import load_prompt
from judgekit.judges.providers.price import Price
from judgekit.judges.settings import JudgeSettings
from judgekit.scorers.goal import AgentGoalAccuracyWithoutReference
from judgekit.scoring import signature


@pytest.mark.parametrize("model", ["judge-model", "/gpt", "openai/", ""])
def test_a_judge_is_named_provider_and_model(model):
    with pytest.raises(ConfigError, match=r"written as provider/model, found"):
        Judge(model)


@pytest.mark.parametrize(
    ("model", "meant"),
    [
        ("gpt-x", "'openai/gpt-x'"),
        ("claude-sonnet-4-5", "'litellm/anthropic/claude-sonnet-4-5'"),
        ("gemini-2.5-pro", "'litellm/gemini/gemini-2.5-pro'"),
        ("anthropic/claude-sonnet-4-5", "'litellm/anthropic'"),
        ("opnai/gpt-x", "'openai'"),
    ],
)
def test_a_model_without_its_provider_is_an_error_that_says_which_it_may_be(model, meant):
    with pytest.raises(ConfigError, match=re.escape(f". Did you mean {meant}?")):
        Judge(model)


PRICED = {"budget": {"usd": 1}}


def test_settings_that_contradict_each_other_are_refused_at_once():
    cases = [
        ({"model": "openia/m"}, "no judge provider is called 'openia'. Did you mean 'openai'"),
        ({"cache": Path("r.jsonl")}, r"r\.jsonl is read-only: use cache_mode='replay', or a SQLite file"),
        ({"cache": Path("r.jsonl"), "cache_mode": "refresh"}, r"r\.jsonl is read-only: use cache_mode='replay'"),
        (PRICED, r"a budget in US dollars needs the price of openai/m: price = \{input=\.\.\., output=\.\.\.\}"),
        ({"redact": ["emial"]}, "no kind of data to redact is called 'emial'. Did you mean 'email'"),
        ({"redact": ["email", "name"]}, "no kind of data to redact is called 'name'"),
        ({"redact": str.upper}, r"redact: <method 'upper' .*> needs a version attribute \(a string\)"),
        ({"params": {"temperature": float("nan")}}, "params contain a value that cannot be sent as JSON"),
        ({"params": {"stop": [{"x": float("-inf")}]}}, "params contain a value that cannot be sent as JSON"),
        ({"params": {"user": "\ud800"}}, "params contain a value that cannot be sent as JSON"),
        ({"params": {"n": 2, "seed": 1, "messages": []}}, "params cannot set messages, n: judgekit sets that itself"),
    ]
    for settings, found in cases:
        with pytest.raises(ConfigError, match=found):
            Judge(**{"model": "openai/m"} | settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"timeout": float("inf")},
        {"attempts": 0},
        {"concurrency": 10**25},
        {"budget": {"usd": float("nan")}},
        {"price": {"input": -1, "output": 1}},
        {"cache_mode": "of"},
        {"cache": None},
        pytest.param({"client": object()}, id="client"),
        pytest.param({"params": {"f": object()}}, id="params"),
    ],
    ids=str,
)
def test_settings_that_make_no_sense_are_refused_by_name(settings):
    with pytest.raises(ConfigError, match=next(iter(settings))):
        Judge("openai/m", **settings)


def test_a_setting_that_does_not_fit_is_an_error_that_says_what_to_write():
    cases = [
        (
            {"temperature": 0},
            "no setting of a judge is called 'temperature'. Did you mean 'params={\"temperature\": 0}'?",
        ),
        ({"logprobs": True}, "no setting of a judge is called 'logprobs'. Did you mean 'params={\"logprobs\": True}'?"),
        ({"modle": "m"}, "no setting of a judge is called 'modle'. Did you mean 'model'?"),
        ({"concurency": 2}, "no setting of a judge is called 'concurency'. Did you mean 'concurrency'?"),
        ({"api_base": "http://x"}, "no setting of a judge is called 'api_base'. Did you mean 'base_url'?"),
        ({"stream": True}, "no setting of a judge is called 'stream'. Known: "),
        ({"redact": "email"}, "a judge's settings: redact: Input should be callable, found 'email'; redact: "),
        (
            {"budget": {"request": 1}},
            "no setting of a judge's budget is called 'request'. Did you mean 'requests'? Known: usd, requests, tokens",
        ),
        ({"timeout": -1}, "a judge's settings: timeout: Input should be greater than 0, found -1"),
        ({"fallback": ["openai/b"]}, "fallback: expected a Judge such as Judge('openai/b'), found 'openai/b'"),
    ]
    for settings, found in cases:
        with pytest.raises(ConfigError) as caught:
            Judge("openai/m", **settings)
        assert str(caught.value).startswith(found)


@pytest.mark.parametrize("name", ["api_key", "openai_api_key", "key"])
def test_a_key_in_the_place_of_a_setting_is_shown_to_nobody(name):
    secret = f"sk-{name}"  # in whole it would stand in the traceback's lines of source
    with pytest.raises(
        ConfigError, match=f"called '{name}': keys come from the environment, and api_key_env"
    ) as caught:
        Judge("openai/m", **{name: secret})
    assert secret not in "".join(traceback.format_exception(caught.value))


def test_an_address_has_to_be_one():
    cases = [
        *("localhost:8000/v1", "api.openai.com/v1", "ftp://x.org/v1", "http://", "http:///v1", "http://x.org:99999/v1"),
        *("http://x.org:port/v1", "http://x.org:0/v1", "http://[::1/v1", "http://x .org/v1", "http://x.org/v1\n", ""),
    ]
    for url in cases:
        with pytest.raises(ConfigError) as info:
            Judge("openai/m", base_url=url)
        assert str(info.value) == f"expected a base_url such as http://localhost:8000/v1, found {url!r}"


@pytest.mark.parametrize(
    "url",
    [
        *("http://ann:hunter2@x.org/v1", "http://hunter2@x.org/v1", "http://ann:hunter2@x.org:99999/v1"),
        *("http://ann:hunter2@[::1/v1", "ann:hunter2@x.org/v1", "http://:hunter2@/v1"),
    ],
)
def test_a_password_in_an_address_is_refused_and_never_shown(url):
    with pytest.raises(ConfigError) as info:
        Judge("openai/m", base_url=url)
    found = "a base_url may not contain a user or password: name the key's variable with api_key_env"
    assert str(info.value) == found


OWN = "http://localhost:8000/v1"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({}, {"model": "openai/n", "timeout": 3, "params": {"seed": 1}}),
        ({}, {"api_key_env": "OPENAI_API_KEY"}),
        ({"base_url": OWN}, {"base_url": f"{OWN}/", "model": "openai/n"}),
        ({"model": "litellm/anthropic/a"}, {"model": "litellm/anthropic/b"}),
    ],
    ids=str,
)
def test_judges_that_send_one_key_to_one_place_share_an_account(one, other):
    assert Judge(**{"model": "openai/m"} | one).account == Judge(**{"model": "openai/m"} | other).account


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({}, {"api_key_env": "SECOND_KEY"}),
        ({}, {"base_url": OWN}),
        ({}, {"base_url": "https://api.openai.com/v1"}),  # no key is sent there unless it is named
        ({"base_url": OWN}, {"base_url": OWN, "api_key_env": "OPENAI_API_KEY"}),
        ({"base_url": OWN}, {"base_url": "http://localhost:8001/v1"}),
        ({"model": "litellm/anthropic/a"}, {"model": "litellm/gemini/a"}),
    ],
    ids=str,
)
def test_judges_that_do_not_have_accounts_of_their_own(one, other):
    assert Judge(**{"model": "openai/m"} | one).account != Judge(**{"model": "openai/m"} | other).account


# What identifies a judge


def signed(**settings):
    """The signature of a scorer that asks such a judge."""
    return signature(AgentGoalAccuracyWithoutReference(Judge(**{"model": "openai/m"} | settings)))


def versioned(version):
    def hide(text):
        return text

    hide.version = version
    return hide


@pytest.mark.parametrize(
    "settings",
    [
        {"model": "openai/n"},
        {"base_url": OWN},
        {"params": {"seed": 1}},
        {"redact": ["email"]},
        {"redact": ["email", "card"]},
        pytest.param({"redact": versioned("1")}, id="redact 1"),
        pytest.param({"redact": versioned("2")}, id="redact 2"),
        {"conversation_tokens": 1_000},
        {"conversation_tokens": 2_000},
        {"conversation_tokens": 2_000, "long": "parts"},
        {"fallback": [Judge("openai/n")]},
        {"fallback": [Judge("openai/m", params={"seed": 1})]},
        {"fallback": [Judge("openai/n"), Judge("openai/o")]},
        {"fallback": [Judge("openai/o"), Judge("openai/n")]},
        {"query": {"api-version": "1"}},
        {"query": {"api-version": "2"}},
        {"headers": {"x-beta": "1"}},
    ],
    ids=str,
)
def test_what_may_change_a_verdict_is_part_of_a_scorers_signature(settings):
    plain = [{}, {"redact": ["card"]}, {"redact": versioned("3")}, {"fallback": [Judge("openai/o")]}]
    assert signed(**settings) not in {signed(**others) for others in plain}
    assert signed(**settings) == signed(**settings)


def test_the_order_in_which_patterns_are_named_is_no_difference():
    assert signed(redact=["email", "card"]) == signed(redact=["card", "email"])


CHANGES_NOTHING = {
    "api_key_env": "SECOND_KEY",
    "price": Price(2, 8, flex=Price(1, 4)),
    "tier": "flex",
    "budget": Budget(requests=4),
    "max_output_tokens": 100,
    "timeout": 3,
    "max_reply_bytes": 1_000,
    "attempts": 1,
    "concurrency": 1,
    "requests_per_minute": 60,
    "tokens_per_minute": 1_000,
    "cache": Path("other.sqlite"),
    "cache_mode": "off",
    "store_text": False,
    "offline": True,
}


def test_what_changes_no_verdict_is_no_part_of_it():
    for name, setting in CHANGES_NOTHING.items():
        assert signed(**{name: setting}) == signed()


def test_every_setting_is_either_part_of_it_or_not():
    part = {"model", "base_url", "params", "redact", "conversation_tokens", "images", "fallback"}
    in_part = {"query", "headers", "client", "together", "long"}
    assert JudgeSettings.model_fields.keys() == part | CHANGES_NOTHING.keys() | in_part
    assert Judge("openai/m", **CHANGES_NOTHING).model_dump().keys() == part | {"key_parts"}


def test_the_identity_of_a_client_is_part_of_it(stub):
    assert signed(client=stub(identity="a")) == signed(client=stub(identity="a"))
    assert len({signed(client=stub(identity=one)) for one in ("a", "b", "")}) == 3
    assert signed(client=stub(identity="")) == signed()


@pytest.mark.parametrize("setting", ["query", "headers"])
def test_what_comes_from_the_environment_is_no_part_of_it(setting):
    assert signed(**{setting: {"key": {"env": "A"}}}) == signed(**{setting: {"key": {"env": "B"}}}) == signed()


# Where a key may stand, and where not.

KEY = "sk-very-private-key"


def test_a_key_in_the_settings_is_refused_with_what_to_write_and_not_shown():
    cases = [
        (
            {"base_url": f"https://judge.test/v1?key={KEY}"},
            r"a base_url may not contain a query: write query = \{api-version",
        ),
        ({"base_url": f"https://judge.test/v1#{KEY}"}, "a base_url may not contain a query"),
        ({"base_url": f"https://me:{KEY}@judge.test/v1"}, "a base_url may not contain a user or password"),
        ({"base_url": f"judge.test/v1?key={KEY}", "cache_mode": "replay"}, "a base_url may not contain a query"),
        ({"params": {"extra_headers": {"x": KEY}}}, "params cannot set extra_headers: put them in headers"),
        ({"params": {"default_headers": {"x": KEY}}}, "params cannot set default_headers: put them in headers"),
        ({"params": {"extra_query": {"x": KEY}}}, "params cannot set extra_query: put it in query"),
        ({"params": {"extra_body": {"x": KEY}}}, "params cannot set extra_body: put its fields directly in params"),
        *(
            (
                {"params": {"a": [{"b": {name: KEY}}]}},
                rf"params\.a\.b cannot set {name}: keys come from the environment",
            )
            for name in ("api_key", "api-key", "apiKey", "aws_secret_access_key", "vertex_credentials")
        ),
        ({"params": {"azure_ad_token": KEY}}, "params cannot set azure_ad_token"),
        ({"params": {"password": KEY}}, "params cannot set password"),
        ({"api_key_env": KEY}, "api_key_env must name an environment variable in capitals"),
        ({"api_key_env": "gsk_0123456789"}, "api_key_env must name an environment variable in capitals"),
        ({"query": {"key": {"env": KEY}}}, "env of key must name an environment variable in capitals"),
        ({"query": {"key": {"environment": KEY}}}, "query: each value must be a text or"),
        ({"query": {"key": {"env": "A", "value": KEY}}}, "query: each value must be a text or"),
        ({"query": {"key": KEY}}, r'query: key looks like a secret: give it as \{env = "MY_KEY"\}'),
        ({"headers": KEY}, "headers: each value must be a text or"),
        ({"headers": {"X-Api-Key": KEY}}, "headers: X-Api-Key looks like a secret"),
        ({"headers": {"Authorization": f"Basic {KEY}"}}, "headers: Authorization looks like a secret"),
        ({"headers": {"x-team": f"a\n{KEY}"}}, "headers: x-team contains characters that cannot be sent"),
    ]
    for settings, said in cases:
        with pytest.raises(ConfigError, match=said) as info:
            Judge("openai/m", **settings)
        printed = "".join(traceback.format_exception(info.value)) + repr(info.value)
        assert KEY not in printed
        assert "gsk_" not in printed


@pytest.mark.parametrize(
    "params",
    [
        {"max_tokens": 9, "max_completion_tokens": 9, "prompt_cache_key": "a", "thinking": {"budget_tokens": 9}},
        {"logit_bias": {"50256": 1}, "stop_token_ids": [1], "skip_special_tokens": True, "tokenizer": "x"},
        {"metadata": {"keyword": "a", "author": "b"}, "truncate_prompt_tokens": 4, "monkey": 1},
    ],
    ids=str,
)
def test_parameters_that_are_only_called_much_like_a_key_are_taken(params):
    assert Judge("openai/m", params=params).params == params


def test_a_judge_shows_and_dumps_no_value_of_the_environment(monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)
    judge = Judge(
        "openai/m",
        query={"api-version": "1", "key": {"env": "MY_KEY"}},
        headers={"x-api-key": {"env": "MY_KEY"}, "x-team": "a"},
        api_key_env="MY_KEY",
    )
    assert KEY not in f"{judge!r} {judge.model_dump()} {judge.model_dump_json()} {judge.__dict__}"
    assert judge.key_parts == {"query": {"api-version": "1"}, "headers": {"x-team": "a"}}
    assert "key_parts" not in repr(judge)


@pytest.mark.parametrize("identity", [7, b"a", ("a",)])
def test_an_identity_that_is_no_text_is_an_error(stub, identity):
    with pytest.raises(ConfigError, match=r"^the identity of Stub must be a text$"):
        Judge("any/m", client=stub(identity=identity))


def test_the_docstring_gives_each_number_its_default_and_its_bounds():
    _, *described = re.split(r"^ {4}(\w+): ", inspect.cleandoc(JudgeSettings.__doc__ or ""), flags=re.MULTILINE)
    texts = dict(zip(described[::2], described[1::2], strict=True))
    bounds = {
        name: {getattr(rule, bound) for rule in one.metadata for bound in ("ge", "gt", "le") if hasattr(rule, bound)}
        for name, one in JudgeSettings.model_fields.items()
    }
    bounded = {name: found for name, found in bounds.items() if found}
    assert len(bounded) == 8
    for name, expected in bounded.items():
        numbers = expected | {JudgeSettings.model_fields[name].default} - {None}
        assert numbers <= {int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", texts[name])}, name


def test_a_provider_with_a_colon_is_an_error_that_says_how_models_are_written():
    with pytest.raises(
        ConfigError, match=r"^no judge provider is called 'openai:gpt-6': write openai/gpt-6 as the model"
    ):
        Judge("openai:gpt-6/x")


def test_an_address_with_and_without_a_slash_at_its_end_is_one(sample):
    judges = [Judge("openai/m", base_url=url) for url in ("http://localhost:1/v1", "http://localhost:1/v1/")]
    prompt = load_prompt("tone")
    assert judges[0] == judges[1]
    assert len({judge.build_request(prompt, sample, Budget).key for judge in judges}) == 1
