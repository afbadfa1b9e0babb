"""Readers: one file for each format that people record conversations in."""

import logging
from collections.abc import Sequence
from functools import cache

from judgekit.errors import ConfigError
from judgekit.formats.readers.adk import ADKReader
from judgekit.formats.readers.adk_eval import ADKEvalReader
from judgekit.formats.readers.anthropic import AnthropicReader, AnthropicStreamReader
from judgekit.formats.readers.atif import AtifReader
from judgekit.formats.readers.autogen import AutoGenReader
from judgekit.formats.readers.base import Reader
from judgekit.formats.readers.bedrock import BedrockReader
from judgekit.formats.readers.braintrust import BraintrustReader
from judgekit.formats.readers.claude_code import ClaudeCodeReader
from judgekit.formats.readers.codex import CodexReader
from judgekit.formats.readers.codex_exec import CodexExecReader
from judgekit.formats.readers.deepeval import DeepevalReader
from judgekit.formats.readers.gemini import GeminiReader
from judgekit.formats.readers.haystack import HaystackReader
from judgekit.formats.readers.huggingface import HuggingFaceReader
from judgekit.formats.readers.inspect import InspectReader
from judgekit.formats.readers.judgekit import JudgekitReader
from judgekit.formats.readers.langchain import LangChainReader
from judgekit.formats.readers.langfuse import LangfuseReader
from judgekit.formats.readers.langsmith import LangSmithReader
from judgekit.formats.readers.llama_index import LlamaIndexReader
from judgekit.formats.readers.mlflow import MLflowReader
from judgekit.formats.readers.openai_agents import OpenAIAgentsReader
from judgekit.formats.readers.openai_chat import OpenAIChatChunksReader, OpenAIChatReader
from judgekit.formats.readers.openai_evals import OpenAIEvalsReader
from judgekit.formats.readers.openai_responses import OpenAIResponsesReader, OpenAIResponsesStreamReader
from judgekit.formats.readers.openinference import OpenInferenceReader
from judgekit.formats.readers.otel import OTelReader
from judgekit.formats.readers.own import OwnReader
from judgekit.formats.readers.phoenix import PhoenixReader
from judgekit.formats.readers.promptfoo import PromptfooReader
from judgekit.formats.readers.pydantic_ai import PydanticAIReader
from judgekit.formats.readers.qwen_code import QwenCodeReader
from judgekit.formats.readers.ragas import RagasReader
from judgekit.formats.readers.rows import RowsReader
from judgekit.formats.readers.semantic_kernel import SemanticKernelReader
from judgekit.formats.readers.sharegpt import ShareGPTReader
from judgekit.formats.readers.smolagents import SmolagentsReader
from judgekit.formats.readers.swe_agent import SWEAgentReader
from judgekit.formats.readers.tau2 import Tau2Reader
from judgekit.formats.readers.vercel import VercelReader
from judgekit.formats.readers.weave import WeaveReader
from judgekit.formats.readers.who_when import WhoWhenReader
from judgekit.registry import entry_point_references, find_object

READERS: dict[str, Reader] = {
    reader.name: reader
    for reader in (
        *(JudgekitReader(), Tau2Reader(), OpenAIChatChunksReader(), AnthropicReader()),
        *(AnthropicStreamReader(), BedrockReader(), ClaudeCodeReader(), QwenCodeReader()),
        *(OpenAIResponsesReader(), OpenAIResponsesStreamReader(), OpenAIAgentsReader(), OpenAIEvalsReader()),
        *(CodexReader(), CodexExecReader(), VercelReader(), RagasReader(), GeminiReader()),
        *(ADKReader(), ADKEvalReader(), DeepevalReader(), PromptfooReader(), SWEAgentReader(), ShareGPTReader()),
        *(HuggingFaceReader(), WhoWhenReader(), OTelReader(), OpenInferenceReader()),
        *(MLflowReader(), AtifReader(), InspectReader(), BraintrustReader(), PhoenixReader(), WeaveReader()),
        *(LangChainReader(), LangfuseReader(), LangSmithReader(), PydanticAIReader(), LlamaIndexReader()),
        *(HaystackReader(), SemanticKernelReader(), AutoGenReader(), SmolagentsReader(), OpenAIChatReader()),
        RowsReader(),
    )
}
_log = logging.getLogger("judgekit")

_NEEDS = ("name", "shape", "joins_lines", "recognizes", "records", "sample")
FALLBACKS = ("openai-chat", "rows")
"""Formats that are only considered if no other reader recognizes a file, in order."""


def reader_named(name: str) -> Reader:
    """Return the reader of a format: a built-in name, one of an installed package, or ``package.module:NAME``."""
    reader = find_object(name, "readers", READERS, _NEEDS, "format")
    return reader if name in READERS else OwnReader(reader)


@cache
def installed_readers() -> Sequence[Reader]:
    """Return the readers of installed packages. Those that cannot be loaded are logged and skipped."""
    found: list[Reader] = []
    for name in entry_point_references("readers"):
        if name not in READERS:
            try:
                found.append(reader_named(name))
            except ConfigError as error:
                _log.warning("skipped the format %s of an installed package: %s", name, error)
    return found
