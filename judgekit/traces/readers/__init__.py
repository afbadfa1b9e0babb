"""Readers: one file for each format that people record conversations in."""

from judgekit.traces.readers.adk import ADKReader
from judgekit.traces.readers.adk_eval import ADKEvalReader
from judgekit.traces.readers.anthropic import AnthropicReader, AnthropicStreamReader
from judgekit.traces.readers.atif import AtifReader
from judgekit.traces.readers.bedrock import BedrockReader, StrandsReader
from judgekit.traces.readers.claude_code import ClaudeCodeReader
from judgekit.traces.readers.codex import CodexReader
from judgekit.traces.readers.codex_exec import CodexExecReader
from judgekit.traces.readers.foreign import Reader
from judgekit.traces.readers.gemini import GeminiReader
from judgekit.traces.readers.inspect import InspectReader
from judgekit.traces.readers.judgekit import JudgekitReader
from judgekit.traces.readers.langchain import LangChainReader
from judgekit.traces.readers.mlflow import MLflowReader
from judgekit.traces.readers.openai_agents import OpenAIAgentsReader
from judgekit.traces.readers.openai_chat import OpenAIChatChunksReader, OpenAIChatReader
from judgekit.traces.readers.openai_responses import OpenAIResponsesReader, OpenAIResponsesStreamReader
from judgekit.traces.readers.openinference import OpenInferenceReader
from judgekit.traces.readers.otel import OTelReader
from judgekit.traces.readers.pydantic_ai import PydanticAIReader
from judgekit.traces.readers.ragas import RagasReader
from judgekit.traces.readers.rows import RowsReader
from judgekit.traces.readers.sharegpt import ShareGPTReader
from judgekit.traces.readers.swe_agent import SWEAgentReader
from judgekit.traces.readers.tau2 import Tau2Reader
from judgekit.traces.readers.tau_bench import TauBenchReader
from judgekit.traces.readers.toolbench import ToolBenchReader
from judgekit.traces.readers.vercel import VercelReader
from judgekit.traces.readers.who_when import WhoWhenReader

READERS: dict[str, Reader] = {
    reader.name: reader
    for reader in (
        JudgekitReader(),
        Tau2Reader(),
        TauBenchReader(),
        OpenAIChatChunksReader(),
        AnthropicReader(),
        AnthropicStreamReader(),
        BedrockReader(),
        StrandsReader(),
        ClaudeCodeReader(),
        OpenAIResponsesReader(),
        OpenAIResponsesStreamReader(),
        OpenAIAgentsReader(),
        CodexReader(),
        CodexExecReader(),
        VercelReader(),
        RagasReader(),
        GeminiReader(),
        ADKReader(),
        ADKEvalReader(),
        SWEAgentReader(),
        ShareGPTReader(),
        ToolBenchReader(),
        WhoWhenReader(),
        OTelReader(),
        OpenInferenceReader(),
        MLflowReader(),
        AtifReader(),
        InspectReader(),
        LangChainReader(),
        PydanticAIReader(),
        OpenAIChatReader(),
        RowsReader(),
    )
}
FALLBACKS = ("openai-chat", "rows")
"""Formats that only a file has which no other reader recognises; of these the first."""
