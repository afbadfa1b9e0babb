"""Readers: one file for each format that people record conversations in. Detection asks them in this order."""

from judgekit.traces.readers.foreign import Reader
from judgekit.traces.readers.judgekit import JudgekitReader
from judgekit.traces.readers.openai_chat import OpenAIChatReader
from judgekit.traces.readers.ragas import RagasReader
from judgekit.traces.readers.rows import RowsReader
from judgekit.traces.readers.tau2 import Tau2Reader

READERS: dict[str, Reader] = {
    reader.name: reader for reader in (JudgekitReader(), Tau2Reader(), RagasReader(), OpenAIChatReader(), RowsReader())
}
