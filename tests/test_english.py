"""Plain English: words that betray a translation are in no page of the docs, and in no text of the package."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GENERATED = {"cli.md", "config.md", "errors.md"}  # from texts of the package
PAGES = [path for path in sorted((ROOT / "docs").rglob("*.md")) if path.name not in GENERATED]
SOURCES = sorted((ROOT / "judgekit").rglob("*.py"))

EVERYWHERE = {
    r"labels of people": "human labels",
    r"(?<!\")\bbeside\b(?!\")": "next to",
    r"\bbesides\b": "apart from, in addition to",
    r"\b(?:mean|number|numbers|means) (?:is|are) off\b": "biased",
    r", also if\b": "even if",
    r", also in\b": "even in",
    r", also for\b": "even for",
}
IN_DOCS = {
    r"\bthose of\b": "name them again",
    r"(?:labels|votes|scores|verdicts) of people": "human labels",
    r"\bcloser to people\b": "agrees better with human labels",
    r"\breceipts?\b": "audit record",
    r"\bgoes before\b": "takes precedence",
    r"\btalk (?:it|a judge) round\b": "prompt injection",
    r"\bmeets no\b": "fails, is not met",
    r"\b(?:misspelt|labelled|recognise|favour|behaviour|colour|normalise)\w*": "American spelling",
    r"\bNobody (?:needs|knows)\b": "say it plainly",
}


def prose(page: Path) -> str:
    """Return a page without its code."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return " ".join(re.sub(r"`[^`]*`", "", text).split())


@pytest.mark.parametrize("phrase", [*EVERYWHERE, *IN_DOCS])
def test_no_page_of_the_docs_has_a_phrase_that_betrays_a_translation(phrase):
    better = (EVERYWHERE | IN_DOCS)[phrase]
    assert [page.name for page in PAGES if re.search(phrase, prose(page))] == [], f"write: {better}"


@pytest.mark.parametrize("phrase", EVERYWHERE)
def test_no_text_of_the_package_has_a_phrase_that_betrays_a_translation(phrase):
    assert [path.name for path in SOURCES if re.search(phrase, path.read_text())] == [], f"write: {EVERYWHERE[phrase]}"
