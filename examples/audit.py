"""A judge held against a person: run, sheet, labels, audit, audit record, gates. Nothing is sent.

The judge's replies were written by hand, and so were the labels, by somebody who is stricter than the judge. The same on
the command line, in this folder:

    judgekit run conversations.jsonl --scorer agent_goal_accuracy_without_reference
    judgekit label last -n 10 -o sheet.html
    judgekit audit last --labels labels.csv
    judgekit run conversations.jsonl --scorer agent_goal_accuracy_without_reference \
        --gate "agent_goal_accuracy_without_reference.corrected >= 0.4" \
        --gate "agent_goal_accuracy_without_reference.corrected.lower >= 0.4"
"""

from pathlib import Path

from judgekit import AgentGoalAccuracyWithoutReference, Judge, audit, check_gates, read, read_labels, run
from judgekit.analysis.sampling import draw_samples
from judgekit.reports.audit import show_audit
from judgekit.reports.sheet import LabelSheet
from judgekit.runs.store import DEFAULT_RUNS_PATH
from judgekit.terminal import console

here = Path(__file__).parent
goal = AgentGoalAccuracyWithoutReference(Judge("demo/handwritten", cache=here / "replies.jsonl", cache_mode="replay"))

first = run(read(here / "conversations.jsonl"), [goal], store=DEFAULT_RUNS_PATH)
print(first)

# What a person gets: ten conversations, and no word of what the judge said of them.
sheet = LabelSheet(first, first.scorers[0], draw_samples(first, goal.name, 10))
Path("sheet.html").write_text("".join(sheet.page()), encoding="utf-8")

# What came back, here of all fourteen. The audit leaves an audit record beside the runs.
show_audit(audit(first, read_labels(here / "labels.csv")), 2, console())

# Any later run of this very judge shows the audit record, and gates may ask what people would say of it, as far as the judge's
# errors on the labeled samples tell. The judge's own number is above what is asked for, and the lower bound is not.
later = run(read(here / "conversations.jsonl"), [goal], store=DEFAULT_RUNS_PATH)
print(later)
gates = [f"{goal.name} >= 0.6", f"{goal.name}.corrected >= 0.4", f"{goal.name}.corrected.lower >= 0.4"]
for gate in check_gates(later, gates).gates:
    print(gate)
