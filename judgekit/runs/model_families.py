"""The families of language models, which judges tend to favor if they are of the same one."""

import re
from collections.abc import Iterable, Mapping, Sequence

_FAMILIES: Mapping[str, str] = {
    "Claude": r"claude",
    "Command": r"command-(?:r|a|light|nightly)",
    "DeepSeek": r"deepseek",
    "Gemini": r"gemini|gemma",
    "GLM": r"glm-\d",
    "GPT": r"(?:chat)?gpt-?[\do]|o[134](?:-mini|-pro|-preview)?(?![\w.])",
    "Grok": r"grok",
    "Kimi": r"kimi|moonshot",
    "Llama": r"llama-?\d|meta-llama",
    "Mistral": r"mistral|mixtral|ministral|magistral|codestral",
    "Nova": r"nova-(?:micro|lite|pro|premier)",
    "Phi": r"phi-?\d",
    "Qwen": r"qwen|qwq",
}
"""The names of models by family, wherever they begin in a name such as ``openrouter/anthropic/claude-sonnet``."""


def model_families(names: Iterable[str]) -> Sequence[str]:
    """Return the families of the models that these texts name; unknown models have none."""
    text = "\n".join(names)
    return [
        family for family, names in _FAMILIES.items() if re.search(rf"(?<![a-z0-9])(?:{names})", text, re.IGNORECASE)
    ]
