"""Who serves models, how each is reached, and how it finds its key.

Keys alone are read from the environment, when they are needed.
"""

import os
from collections.abc import Callable
from typing import NamedTuple

from judgekit.errors import AuthenticationError, ConfigError
from judgekit.judges.client import Client
from judgekit.judges.litellm import LitellmClient
from judgekit.judges.openai import OpenAIClient


class Provider(NamedTuple):
    """Who serves models.

    Attributes:
        connect: Makes its client, from ``base_url``, ``api_key``, ``timeout`` and ``price``.
        base_url: Where it is.
        api_key_env: The environment variable that holds its key; ``None`` if it finds keys by itself.
    """

    connect: Callable[..., Client]
    base_url: str = ""
    api_key_env: str | None = None

    def key(self, base_url: str | None, api_key_env: str | None) -> str | None:
        """The key to send. A server of the user's own is sent none that it was not meant to see.

        Raises:
            AuthenticationError: The environment has no key, or none that can be sent.
        """
        if base_url is not None and api_key_env is None:
            return "no-key"
        name = api_key_env or self.api_key_env
        if name is None:
            return None
        if not (key := os.environ.get(name, "").strip()):
            raise AuthenticationError(f"the environment has no key for {base_url or self.base_url}: set {name}")
        if not (key.isascii() and key.isprintable()):
            raise AuthenticationError(f"the key in {name} holds characters that cannot be sent: copy it again")
        return key


PROVIDERS = {
    "openai": Provider(OpenAIClient, "https://api.openai.com/v1", "OPENAI_API_KEY"),
    "litellm": Provider(LitellmClient),
}


_FAMILIES = {"claude": "litellm/anthropic", "gemini": "litellm/gemini"}
"""Who serves models whose names begin so, if it is not OpenAI."""


def likely_model(name: str) -> str:
    """Return a model's name with its likely provider, such as ``openai/gpt-4o`` for ``gpt-4o``."""
    provider = next((one for family, one in _FAMILIES.items() if name.startswith(family)), "openai")
    return f"{provider}/{name}"


def provider_named(name: str) -> Provider:
    """A provider by its name.

    Raises:
        ConfigError: There is none.
    """
    if name not in PROVIDERS:
        raise ConfigError.unknown("provider of judges", name, PROVIDERS, guess=f"litellm/{name}")
    return PROVIDERS[name]
