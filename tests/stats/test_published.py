"""The numbers that others published of their judges, found again from their recorded verdicts."""

import gzip
import json
from itertools import groupby

import numpy as np
import pytest

from judgekit.stats.agreement import cohen_kappa


def recorded(folder, name):
    with gzip.open(folder / "judges" / f"{name}.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


def test_the_kappas_of_llmbar(shared_data):
    """`False` and `True` are the two orders of the answers, the verdict turned back in the second.

    The published kappas with the label compare a 1 for the first answer and a 0 for the second or for no verdict with a
    label that is 1 or 2: "the second" never agrees. So they are no measure of these judges, and are found again as such;
    that of the two orders with each other codes both alike.
    """
    published = json.loads((shared_data / "judges" / "llmbar_published_statistics.json").read_text())
    for name, rows in groupby(
        recorded(shared_data, "llmbar_verdicts"), lambda row: f"{row['subset']}|{row['llm']}|{row['strategy']}"
    ):
        verdicts = [(str(row["label"]), str(row["fwd"]), str(row["swap"])) for row in rows]
        label, forward, swapped = np.array(verdicts).T
        codes = [np.where(order == "1", 1, 0) for order in (forward, swapped)]
        kappas = {
            "kappa_False": cohen_kappa(codes[0], label.astype(int)),
            "kappa_True": cohen_kappa(codes[1], label.astype(int)),
            "kappa_agreement": cohen_kappa(*codes),
        }
        kappas["kappa_average"] = (kappas["kappa_False"] + kappas["kappa_True"]) / 2
        theirs = published.pop(name)
        assert kappas == pytest.approx({key: theirs[key] for key in kappas}, abs=1e-9)
    assert not published
