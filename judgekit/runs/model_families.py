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
_MODEL = re.compile(
    r"(?:anthropic|azure|bedrock|cohere|google|groq|litellm|mistral|ollama|openai|openrouter|vertex_ai|vllm|xai)/.*"
    r"|.*(?<![a-z])(?:chatgpt|gpt|llm).*|.*model[ _-]graded.*|ai|judge|model",
    re.IGNORECASE,
)
"""Names of models of any family, and of judges."""
_PERSON = re.compile(r"[^\W\d_]+(?:[ .'-]+[^\W\d_]+)+\.?")
_VARIANT = re.compile(
    r"\b(?:chat|code|coder|flash|haiku|instruct|large|medium|mini|nano|opus|pro|small|sonnet|ultra)\b", re.IGNORECASE
)


def model_families(names: Iterable[str]) -> Sequence[str]:
    """Return the families of the models that these texts name; unknown models have none."""
    text = "\n".join(names)
    return [
        family for family, names in _FAMILIES.items() if re.search(rf"(?<![a-z0-9])(?:{names})", text, re.IGNORECASE)
    ]


def is_model_name(name: str, judges: Iterable[str] = ()) -> bool:
    """Return whether a name is one of these judges, or looks like that of a model.

    Some models share their first name with people: ``Claude`` alone is a model, and with a surname a person.
    """
    names = {form.casefold() for judge in judges for form in (judge, judge.rpartition("/")[2])}
    if name.strip().casefold() in names or _MODEL.fullmatch(name.strip()):
        return True
    is_family = re.search(rf"(?<![a-z0-9])(?:{'|'.join(_FAMILIES.values())})(?![a-z])", name, re.IGNORECASE) is not None
    return is_family and (not _PERSON.fullmatch(name.strip()) or bool(_VARIANT.search(name)))
