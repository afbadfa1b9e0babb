"""What an audit finds, in words and figures, as a notebook shows it."""

from html.parser import HTMLParser

import pytest

from judgekit.analysis.findings import Audit, ScorerAudit
from judgekit.runs.audit_records import Correction
from judgekit.runs.intervals import Estimate


def audit_saying(text: str, classes: int = 2) -> Audit:
    figure = Estimate(value=0.71, low=0.58, high=0.82, method=text)
    labels = [f"{text} {number}" for number in range(classes)]
    found = ScorerAudit(
        scorer=text,
        fingerprint=None,
        kind="binary",
        sample_count=120,
        labels=120,
        annotators=2,
        selection="random",
        unused_labels={text: 2},
        agreement={"kappa": figure, text: figure},
        confusion={one: dict.fromkeys(labels, 1.5) for one in labels},
        judge_mean=Estimate(value=0.9),
        correction=Correction(unavailable_reason=text),
        bias={"length": figure},
        notes=[text],
    )
    return Audit(run=3, sources=[text], scorers=[found], unmatched={text: 1})


class Shown(HTMLParser):
    def __init__(self, audit: Audit) -> None:
        super().__init__()
        self.tags: list[tuple[str, object]] = []
        self.texts: list[str] = []
        self.feed(audit._repr_html_())

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append((tag, attrs))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_a_notebook_shows_the_agreement_the_mean_and_what_there_is_to_know():
    shown = Shown(audit_saying("said"))
    assert shown.texts[:4] == [
        "audit of run 3 with said",
        "1 label left out: said",
        "said",
        " no corrected mean, kappa .71 [.58, .82], n=120 from 2 people",
    ]
    assert shown.texts[4:19] == [
        *("mean", "judge's mean (raw)", ".90"),
        *("agreement", "kappa", ".71 [.58, .82]", "said"),
        *("agreement", "said", ".71 [.58, .82]", "said"),
        *("bias", "length", ".71 [.58, .82]", "said"),
    ]
    assert "mean: not corrected: said" in shown.texts
    assert "notes: said" in shown.texts
    assert "labels: 2 labels left out: said" in shown.texts
    at = shown.texts.index("human labels (rows), judge (columns)")
    assert shown.texts[at + 1 : at + 6] == ["said 0", "said 1", "said 0", "1.5", "1.5"]


def test_a_judge_with_many_labels_has_no_table_of_them():
    assert "human labels (rows), judge (columns)" in Shown(audit_saying("said", 12)).texts
    assert "human labels (rows), judge (columns)" not in Shown(audit_saying("said", 13)).texts


@pytest.mark.parametrize(
    "text", ["<script>alert(1)</script>", "</table><img src=x onerror=alert(1)>", "&lt; \"'", "$x$"]
)
def test_all_that_an_audit_says_is_text(text):
    hostile, harmless = Shown(audit_saying(text)), Shown(audit_saying("said"))
    assert hostile.tags == harmless.tags
    assert hostile.tags[0] == ("div", [("class", "tex2jax_ignore mathjax_ignore")])
    assert "".join(hostile.texts).count(text) == "".join(harmless.texts).count("said")
