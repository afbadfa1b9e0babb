"""Secrets: their names, and what is left of them in what a server says."""

import html
import string
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgekit.errors import AuthenticationError
from judgekit.judges.providers.secrets import (
    RequestExtras,
    SecretMask,
    environment_secrets,
    is_secret_name,
    read_extras,
)

KEY = 'sk-proj-aB3_/+"\\%2Fz'
printable = string.digits + string.ascii_letters + string.punctuation
keys = st.text(printable, min_size=8, max_size=60)


@settings(max_examples=10 * settings.default.max_examples)
@given(key=keys, before=st.text(max_size=9), after=st.text(max_size=9), data=st.data())
def test_a_key_is_found_however_it_is_spelled(spellings, recovered, key, before, after, data):
    said = data.draw(st.sampled_from(spellings))(key)
    masked = SecretMask((key,))(f"{before} {said} {after}")
    assert "***" in masked
    assert not recovered(masked.replace("***", " "), key)


@pytest.mark.parametrize("key", ["0000000\\", 'sk-1234567\\"', "\\" * 8, "\\/\\/\\/\\/"], ids=repr)
def test_a_key_may_end_in_what_json_escapes(spellings, recovered, key):
    for spelled in spellings:
        masked = SecretMask((key,))(spelled(key) + " .")
        assert "***" in masked
        assert not recovered(masked.replace("***", " "), key)


@given(key=keys, text=st.text())
def test_a_text_without_the_key_comes_as_it_is(recovered, key, text):
    masked = SecretMask((key,))
    if not recovered(text, key):
        assert masked(text) == text
    assert masked.body(text.encode()) == masked(text).encode() or key in text


@given(key=keys, body=st.binary())
def test_a_body_may_hold_any_bytes(key, body):
    kept = body + b" " + key.encode() + b" " + body  # a backslash before it may be a part of how it is written
    assert SecretMask((key,)).body(kept) == body + b" *** " + body or key.encode() in body + body


def test_every_secret_is_masked_and_of_a_header_its_last_word():
    masked = SecretMask(("Bearer sk-very-private", "second-key-1", "a b"))
    assert masked("sk-very-private, second-key-1, Bearer sk-very-private, a b") == "***, ***, ***, a b"


@pytest.mark.parametrize("key", ["", "no-key", "ollama", "EMPTY", "1234567"])
def test_a_word_of_fewer_than_8_characters_is_left_alone(key):
    assert SecretMask((key,))(f"The {key} was fed.") == f"The {key} was fed."


@pytest.mark.parametrize(
    "said",
    ["\\" * 200_000, "%73" * 100_000, "\\u0073" * 50_000, "s" * 300_000 + "%2d", (KEY[:-1] + "%2d") * 20_000],
    ids=len,
)
def test_no_text_takes_more_time_than_its_length(said):
    started = time.thread_time()
    SecretMask((KEY,))(said + KEY)
    assert time.thread_time() - started < 2


def test_names_of_secrets_are_known():
    cases = [
        *(
            *("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "HF_TOKEN"),
            "CLIENT_SECRET",
        ),
        *("api_key", "apiKey", "X-Api-Key", "Ocp-Apim-Subscription-Key", "azure_ad_token", "vertex_credentials", "key"),
        *(
            *("Authorization", "Proxy-Authorization", "password", "DB_PASSWORD", "OPENAI_API_KEY_2", "Cookie"),
            "accessToken",
        ),
    ]
    for name in cases:
        assert is_secret_name(name)


def test_other_names_are_not():
    cases = [
        *(
            *("max_tokens", "budget_tokens", "prompt_cache_key", "monkey", "keyword", "author", "tokenizer"),
            "stop_token_ids",
        ),
        *("api-version", "HTTP-Referer", "X-Title", "anthropic-beta", "OpenAI-Organization", "PATH", "HOME"),
    ]
    for name in cases:
        assert not is_secret_name(name)


def test_the_environment_gives_values_by_name(monkeypatch):
    monkeypatch.setenv("OWN_API_KEY", "a secret")
    monkeypatch.setenv("OWN_NAME", "no secret")
    assert "a secret" in environment_secrets()
    assert "no secret" not in environment_secrets()


def test_values_of_the_environment_are_read_and_known_as_secrets(monkeypatch):
    monkeypatch.setenv("A_KEY", " first ")
    monkeypatch.setenv("B_KEY", "second")
    found = read_extras({"v": "1", "key": {"env": "A_KEY"}}, {"x-key": {"env": "B_KEY"}}, "here")
    assert found == RequestExtras({"v": "1", "key": "first"}, {"x-key": "second"}, ("first", "second"))


@pytest.mark.parametrize(
    ("value", "said"), [("", "set the environment variable A_KEY"), ("k\u00e9y", "characters that cannot be sent")]
)
def test_a_value_that_is_not_there_or_cannot_be_sent_is_an_error(monkeypatch, value, said):
    monkeypatch.setenv("A_KEY", value)
    with pytest.raises(AuthenticationError, match=said):
        read_extras({}, {"x-key": {"env": "A_KEY"}}, "here")


@pytest.mark.parametrize(
    "spelled",
    [
        "sk+abc/def+ghi",
        "sk abc&#47;def&#x20;ghi",
        "sk&#32;abc&sol;def ghi",
        "sk&amp;#32;abc&amp;#x2F;def&#032;ghi",
        "sk+abc%2Fdef+ghi",
        "&#115;&#107; abc/def ghi",
    ],
)
def test_a_secret_in_a_form_or_in_html_is_masked(spelled):
    assert SecretMask(["sk abc/def ghi"])(f"<p>{spelled}</p>") == "<p>***</p>"


def test_signs_of_html_in_a_secret_are_masked():
    mask = SecretMask(["a<b>&c\"d'e"])
    assert mask(html.escape("x a<b>&c\"d'e")) == "x ***"
    assert mask("a<b>&amp;c&#34;d&apos;e") == "***"
    assert mask("a+b&lt;") == "a+b&lt;"
