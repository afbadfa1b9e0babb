"""Writers: one file for each format that samples are written in."""

from judgekit.formats.writers.judgekit import JudgekitWriter
from judgekit.formats.writers.openai_chat import OpenAIChatWriter
from judgekit.formats.writers.ragas import RagasWriter
from judgekit.formats.writers.writer import Writer

WRITERS: dict[str, Writer] = {writer.name: writer for writer in (JudgekitWriter(), OpenAIChatWriter(), RagasWriter())}
