"""Who serves models, and how each finds its key. Keys alone are read from the environment, when they are needed."""

import os
from typing import NamedTuple

from judgekit.errors import AuthenticationError, ConfigError


class Provider(NamedTuple):
    """Who serves models: where, and under which name its key stands in the environment."""

    base_url: str
    api_key_env: str

    def key(self, base_url: str | None, api_key_env: str | None) -> str:
        """The key to send. A server of the user's own is sent none that it was not meant to see.

        Raises:
            AuthenticationError: The environment has no key, or none that can be sent.
        """
        if base_url is not None and api_key_env is None:
            return "no-key"
        name = api_key_env or self.api_key_env
        if not (key := os.environ.get(name, "").strip()):
            raise AuthenticationError(f"the environment has no key for {base_url or self.base_url}: set {name}")
        if not (key.isascii() and key.isprintable()):
            raise AuthenticationError(f"the key in {name} holds characters that cannot be sent: copy it again")
        return key


PROVIDERS = {"openai": Provider("https://api.openai.com/v1", "OPENAI_API_KEY")}


def provider_named(name: str) -> Provider:
    """A provider by its name.

    Raises:
        ConfigError: There is none.
    """
    if name not in PROVIDERS:
        raise ConfigError.unknown("provider of judges", name, PROVIDERS)
    return PROVIDERS[name]
