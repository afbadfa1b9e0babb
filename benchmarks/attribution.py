"""How often a judge finds the step that people marked in the failed conversations of Who&When, and the best constant.

Every conversation is shown to the judge in one request, which is told that it failed. The labels are those of the files;
all conversations failed, so that false alarms need sound recordings of your own with labels: see docs/failures.md.

python benchmarks/attribution.py openai/gpt-5-mini FOLDER        all conversations, with the right answer shown
python benchmarks/attribution.py openai/gpt-5-mini FOLDER 20     the first 20
"""

import sys
from itertools import islice

from judgekit import Sample, audit, read, run, scorer
from judgekit.analysis.labels import recorded_labels
from judgekit.scorers.failure_analysis import FailureAnalysis


@scorer(version="1")
def outcome(_sample: Sample) -> tuple[float, str]:
    """Say of each conversation that it failed, as all of Who&When did."""
    return 0.0, "the final answer is wrong"


def main() -> None:
    model, folder, *limit = sys.argv[1:]
    samples = list(islice(read(folder, format="who-when"), int(limit[0]) if limit else None))
    scored = run(samples, [outcome, FailureAnalysis(model)], progress=True)
    print(scored)
    (findings,) = audit(scored, recorded_labels(scored, {"sound": "failure_analysis"})).scorers
    print("\n| figure | share | 95 % interval |\n|---|---|---|")
    for name, figure in findings.steps.items():
        bounds = "" if figure.low is None or figure.high is None else f"{figure.low:.3f} to {figure.high:.3f}"
        print(f"| {name} | {figure.value:.3f} | {bounds} |")
    print(f"\n{findings.notes[-1]}")


if __name__ == "__main__":
    main()
