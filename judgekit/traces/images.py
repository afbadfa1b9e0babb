"""The images of a recording, as judges are shown them."""

import hashlib
from dataclasses import dataclass
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import Field

from judgekit.traces.media import decode_base64, image_size, image_type, standard_base64
from judgekit.traces.message import FrozenModel, MediaPart

ImageDetail: TypeAlias = Literal["auto", "low", "high", "original"]

_PATCH = 28
"""The side in pixels of the square that a token stands for, the smallest of the known providers' (Anthropic's)."""
_LIKELY_TOKENS = 1_568
"""Anthropic's limit for one image. Of an image of 1920 x 1080, OpenAI and Gemini count 630 to 2,500."""
_LOW_TOKENS = 280
_MOST_TOKENS = 4_000
"""At least as many as OpenAI's models with multipliers (1,536 x 2.46) and Gemini (2,240) count for any image."""
_MOST_TOKENS_UNSEEN = 10_000
"""OpenAI's limit for most models, for an image at an address."""


class ImageSettings(FrozenModel):
    """The images of a recording that a judge is shown: PNG, JPEG, GIF or WebP.

    They are sent as data in the place where they stand. Nothing is fetched or opened. Scores say how many images were
    not shown, and why.

    Attributes:
        detail: The resolution in which the model looks at them, where its provider has a choice.
        max_images: The maximum number in a conversation, at least 1: the user's first, then the latest.
        max_bytes: The maximum size of one in bytes, at least 1.
        addresses: Whether to send the addresses (``http`` or ``https``) of images that are recorded by address, which
            the provider then fetches. ``litellm`` never gets any, since it fetches them in this process.
    """

    detail: ImageDetail = "auto"
    max_images: int = Field(default=20, ge=1)
    max_bytes: int = Field(default=5_000_000, ge=1)
    addresses: bool = False


@dataclass(frozen=True)
class Image:
    """An image of a recording.

    Attributes:
        url: What is sent: a data URL, or the address; empty if it is not shown.
        sha256: The SHA-256 of the data in hexadecimal, or of the address.
        description: The type and size, for the judge.
        detail: See `ImageSettings`.
        patches: The number of squares of 28 pixels that cover it; 0 if unknown.
        hidden: Why it is not shown; empty if it is.
    """

    url: str
    sha256: str
    description: str
    detail: ImageDetail = "auto"
    patches: int = 0
    hidden: str = ""

    @classmethod
    def of(cls, part: MediaPart, settings: ImageSettings) -> "Image":
        """Return the image, hidden if the settings or its own data do not allow to show it."""
        if part.data is not None:
            return cls._of_data(part.data, settings)
        if part.sha256 is not None:
            return hidden_image("the run stores only its hash")
        if part.url is None:
            return hidden_image("its data is not recorded")
        if not _is_web_address(part.url):
            return hidden_image("only a path or address is recorded, which is never opened")
        if not settings.addresses:
            return hidden_image("only its address is recorded, which images = {addresses = true} would send")
        return cls(part.url, _hash(part.url.encode()), "at an address", settings.detail)

    @classmethod
    def _of_data(cls, data: str, settings: ImageSettings) -> "Image":
        data = standard_base64(data)
        if len(data) // 4 * 3 - data[-2:].count("=") > settings.max_bytes:
            return hidden_image(f"more than max_bytes = {settings.max_bytes:,}")
        if (content := decode_base64(data)) is None:
            return hidden_image("its data is not base64")
        mime_type = image_type(content)
        if mime_type is None or (size := image_size(content)) is None:
            return hidden_image("its data is not a PNG, JPEG, GIF or WebP")
        width, height = size
        return cls(
            f"data:{mime_type};base64,{data}",
            _hash(content),
            f"{mime_type}, {width} x {height}",
            settings.detail,
            -(-width // _PATCH) * -(-height // _PATCH),
        )

    @property
    def tokens(self) -> int:
        """The estimated number of input tokens. Providers differ by a factor of two or three."""
        if self.hidden:
            return 0
        likely = _LOW_TOKENS if self.detail == "low" else _LIKELY_TOKENS
        return min(self.patches, likely) if self.patches else likely

    @property
    def most_tokens(self) -> int:
        """The maximum number of input tokens that the known providers count for it."""
        return max(self.patches, _MOST_TOKENS) if self.patches else _MOST_TOKENS_UNSEEN


def hidden_image(reason: str) -> Image:
    """Return an image that is not shown."""
    return Image("", "", "not shown", hidden=reason)


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _is_web_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and url.isprintable() and " " not in url
