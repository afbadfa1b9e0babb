"""judgekit beside other tools: makes an environment for each, gives them the same work in turns, and writes the page.

python -m benchmarks.peers
"""

import argparse
import datetime
import json
import os
import platform
import resource
import statistics
import subprocess
import tempfile
import urllib.request
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.peers import work
from benchmarks.peers.page import Row, Section, plot, table
from benchmarks.peers.tools import JUDGEKIT, PEERS, ROOT, Worker, environment, workers_of
from benchmarks.server import running

ROUNDS = 5
CONVERSATIONS = 1_000
JUDGED, AT_ONCE, EQUAL = 64, 32, 50
TEXTS = {20: 200, 200: 20, 2_000: 1}
"""Words of a text, and how many pairs a round has."""
QUERIES = 1_000
MANY = 100_000
TURNED = "CPU time is the median of {rounds} rounds, in which the tools take turns, after one that warms up."

Answers = dict[str, list[dict[str, Any]]]


class Benchmark:
    """The workers, and what they are asked."""

    def __init__(self, workers: Sequence[Worker], errors: dict[str, str], folder: Path, scale: int) -> None:
        self.workers = {worker.tool.name: worker for worker in workers}
        self.errors, self.folder, self.scale = errors, folder, scale
