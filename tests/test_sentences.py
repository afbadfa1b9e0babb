"""The page of what reports say about judges quotes what the package says."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_each_sentence_that_the_docs_explain_is_one_that_reports_say():
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "judgekit").rglob("*.py")]
    texts = [node.value for text in sources for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)]
    said = "\n".join(text for text in texts if isinstance(text, str))
    said += "".join(path.read_text(encoding="utf-8") for path in (ROOT / "judgekit/reports/page").glob("*.js"))
    page = (ROOT / "docs/sentences.md").read_text(encoding="utf-8")
    quoted = [cell for line in page.splitlines() if line.startswith("| `") for cell in line.split(" | ")[:1]]
    pieces = [piece for cell in quoted for text in re.findall("`([^`]+)`", cell) for piece in text.split("…") if piece]
    assert len(pieces) > 40
    assert [piece for piece in pieces if piece.rstrip() not in said] == []
