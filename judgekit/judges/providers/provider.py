"""Providers of models: how to connect to them, and where their keys are."""

from collections.abc import Callable
from typing import NamedTuple

from judgekit.errors import ConfigError
from judgekit.judges.providers.connection import Connection
from judgekit.judges.providers.decisions import DecisionsClient
from judgekit.judges.providers.litellm import LitellmClient
from judgekit.judges.providers.openai import OpenAIClient
from judgekit.judges.providers.secrets import read_secret
from judgekit.judges.request import Client
from judgekit.registry import find_object, is_named


class Provider(NamedTuple):
    """A provider of models.

    Attributes:
        connect: Creates its client.
        base_url: The address of its server.
        api_key_env: The environment variable that holds its key; ``None`` if it finds keys by itself.
    """

    connect: Callable[[Connection], Client]
    base_url: str = ""
    api_key_env: str | None = None

    def read_key(self, base_url: str | None, api_key_env: str | None) -> str | None:
        """Return the key to send. The user's own server gets no key unless its variable is named.

        Raises:
            AuthenticationError: The environment has no key, or one that cannot be sent.
        """
        if base_url is not None and api_key_env is None:
            return "no-key"
        name = api_key_env or self.api_key_env
        return None if name is None else read_secret(name, base_url or self.base_url)


DECISIONS = "openai-decisions"
"""The provider of decision models."""
PROVIDERS = {
    "openai": Provider(OpenAIClient, "https://api.openai.com/v1", "OPENAI_API_KEY"),
    "litellm": Provider(LitellmClient),
    DECISIONS: Provider(DecisionsClient, "https://api.openai.com/v1", "OPENAI_API_KEY"),
}

_FAMILIES = {"claude": "litellm/anthropic", "gemini": "litellm/gemini"}
"""The providers of models by the prefixes of their names, other than OpenAI."""


def suggest_model(name: str) -> str:
    """Return a model's name with its likely provider, such as ``openai/gpt-x`` for ``gpt-x``."""
    provider = next(
        (family_provider for family, family_provider in _FAMILIES.items() if name.startswith(family)), "openai"
    )
    return f"{provider}/{name}"


def get_provider(name: str) -> Provider:
    """Return a provider: one of judgekit, of an installed package, or ``package.module:NAME``.

    Raises:
        ConfigError: There is no such provider.
    """
    if ":" in name and name.partition(":")[0] in PROVIDERS:
        raise ConfigError(f"no judge provider is called {name!r}: write {name.replace(':', '/')} as the model")
    needs = (*Provider._fields, "read_key")
    return find_object(name, "providers", PROVIDERS, needs, "judge provider", guess=f"litellm/{name}")


def find_provider(name: str) -> Provider | None:
    """Return a provider, or ``None`` if it does not exist: replies of discontinued models can still be replayed."""
    if not is_named(name, "providers", PROVIDERS):
        return None
    try:
        return get_provider(name)
    except ConfigError:
        return None
