"""Writers: one file for each format that samples are written in."""

from judgekit.traces.writers.judgekit import JudgekitWriter
from judgekit.traces.writers.openai_chat import OpenAIChatWriter
from judgekit.traces.writers.ragas import RagasWriter
from judgekit.traces.writers.writer import Writer

WRITERS: dict[str, Writer] = {writer.name: writer for writer in (JudgekitWriter(), OpenAIChatWriter(), RagasWriter())}
