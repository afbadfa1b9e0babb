"""The tools that are compared, in environments and worker processes of their own."""

import json
import os
import subprocess
import sys
import threading
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
SECONDS = 240
"""How long one job may take."""
QUIET = {
    "DEEPEVAL_TELEMETRY_OPT_OUT": "YES",
    "INSPECT_DISPLAY": "none",
    "LANGSMITH_TRACING": "false",
    "OPENAI_API_KEY": "-",
    "RAGAS_DO_NOT_TRACK": "true",
}
"""Environment variables that switch off telemetry and progress bars of the tools."""


class Tool(NamedTuple):
    """A tool, and how one gets at what is compared."""

    name: str
    requirements: tuple[str, ...]
    imports: str
    ours: str
    """The import of judgekit for the same purpose."""

    @property
    def adapter(self) -> str:
        return self.name.replace("-", "_")


CALLS = "from judgekit import Sample, ToolCallAccuracy, ToolCallF1"
JUDGED = "from judgekit import Sample, Judge, AgentGoalAccuracyWithoutReference"
JUDGEKIT = Tool("judgekit", (), CALLS, CALLS)
PEERS = (
    Tool(
        "ragas",
        (
            "ragas==0.4.3",
            "langchain-community==0.3.31",
            "instructor==1.17.0",
        ),  # what it imports, and openai's newer client
        "from ragas.metrics.collections import ToolCallAccuracy, ToolCallF1",
        CALLS,
    ),
    Tool("deepeval", ("deepeval==4.3.1",), "from deepeval.metrics import ToolCorrectnessMetric", CALLS),
    Tool(
        "agentevals",
        ("agentevals==0.0.9",),
        "from agentevals.trajectory.match import create_trajectory_match_evaluator",
        CALLS,
    ),
    Tool(
        "inspect-ai", ("inspect-ai==0.3.285", "openai==3.54.0"), "from inspect_ai.scorer import model_graded_qa", JUDGED
    ),
    Tool("autoevals", ("autoevals==0.4.1", "openai==3.54.0"), "from autoevals import ClosedQA", JUDGED),
    Tool(
        "openevals",
        ("openevals==0.2.2", "langchain-openai==1.7.3"),
        "from openevals.llm import create_async_llm_as_judge",
        JUDGED,
    ),
    Tool(
        "rouge-score",
        ("rouge-score==0.1.2",),
        "from rouge_score.rouge_scorer import RougeScorer",
        "from judgekit import Sample, ROUGE",
    ),
    Tool("sacrebleu", ("sacrebleu==2.6.0",), "from sacrebleu.metrics import BLEU", "from judgekit import Sample, BLEU"),
    Tool(
        "pytrec-eval",
        ("pytrec-eval-terrier==0.5.11",),
        "import pytrec_eval",
        "from judgekit import Sample, Ranking, NDCG, AveragePrecision, ReciprocalRank",
    ),
)


def installed(tool: Tool, folder: Path) -> Path:
    """The Python of the tool's environment, which is made if it is not there.

    Raises:
        RuntimeError: The tool cannot be installed.
    """
    if not tool.requirements:
        return Path(sys.executable)
    home = folder / tool.name
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    wanted, held = "\n".join(tool.requirements), home / "requirements.txt"
    if not held.exists() or held.read_text(encoding="utf-8") != wanted:
        print(f"installing {' '.join(tool.requirements)}", flush=True)
        venv.create(home, with_pip=True, clear=True)
        command = [str(python), "-m", "pip", "install", "-q", *tool.requirements]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError((done.stderr.strip() or "pip failed").splitlines()[-1])
        held.write_text(wanted, encoding="utf-8")
    return python


def environment(home: Path) -> dict[str, str]:
    """Variables for a tool's process, which keeps its files below ``home``."""
    return {"PATH": os.environ.get("PATH", ""), "HOME": str(home), "PYTHONPATH": str(ROOT), **QUIET}


class Worker:
    """A process that does jobs with one tool."""

    def __init__(self, tool: Tool, python: Path, home: Path) -> None:
        self.tool, self.python, self.home = tool, python, home
        home.mkdir(parents=True, exist_ok=True)
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> "subprocess.Popen[str]":
        with (self.home / "log.txt").open("a") as log:
            return subprocess.Popen(
                [str(self.python), "-m", "benchmarks.peers.worker", self.tool.adapter],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=self.home,
                env=environment(self.home),
            )

    def ask(self, job: str, **params: Any) -> dict[str, Any]:
        """CPU seconds, result and memory of a job, or its error."""
        process = self.process = self.process or self.start()
        assert process.stdin is not None
        assert process.stdout is not None
        timer = threading.Timer(SECONDS, process.kill)
        timer.start()
        try:
            print(json.dumps({"job": job, "params": params}), file=process.stdin, flush=True)
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            timer.cancel()
        if not line:
            self.stop()
            return {"error": f"ended, or took more than {SECONDS} s"}
        return json.loads(line)

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None


def workers_of(tools: Sequence[Tool], folder: Path, home: Path) -> tuple[dict[str, Worker], dict[str, str]]:
    """A worker for each tool that can be installed, and the errors of the others."""
    workers, errors = dict[str, Worker](), dict[str, str]()
    for tool in tools:
        try:
            workers[tool.name] = Worker(tool, installed(tool, folder), home / tool.name)
        except (OSError, RuntimeError) as error:
            errors[tool.name] = str(error)
    return workers, errors
