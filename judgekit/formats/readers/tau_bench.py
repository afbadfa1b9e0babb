"""Result files of tau-bench: trials of tasks, with trajectories in the messages of OpenAI's Chat Completions.

[{"task_id": 0, "trial": 0, "reward": 1.0, "traj": [{"role": "system", "content": ...}, ...],
  "info": {"task": {"instruction": ..., "actions": [{"name": "f", "kwargs": {...}}], "outputs": []}}}]
"""

import hashlib

from pydantic import JsonValue

from judgekit.errors import TraceError
from judgekit.formats.blocks.openai_chat import read_messages
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.readers.base import RowReader, build_sample, first_record, group_name
from judgekit.traces.equality import canonical_json
from judgekit.traces.message import JsonObject
from judgekit.traces.recording import Label
from judgekit.traces.sample import Sample


class TauBenchReader(RowReader):
    """Result files of tau-bench.

    A task's actions are the expected calls; the rest goes into the sample's metadata. The reward is a label: it
    compares the state of the database, so it does not rate single calls. Files do not name their domain, and task ids
    start at 0 in each, so a group is named by a hash of the task and the id.
    """

    name = "tau-bench"
    shape = 'tau-bench: [{"task_id": ..., "trial": ..., "reward": ..., "traj": [...], "info": {"task": ...}}]'

    def recognizes(self, value: JsonValue) -> bool:
        """Recognize trials by their trajectory."""
        row = first_record(value)
        return isinstance(row, dict) and "task_id" in row and isinstance(row.get("traj"), list)

    def sample(self, record: JsonValue, index: int) -> Sample:
        """Read one trial, named by its task and number."""
        row = FieldTracker.of(record)
        task_id, trial = row.id("task_id"), row.count("trial")
        if task_id is None:
            raise row.type_error("task_id", "a task id")
        messages = read_messages(row, "traj")
        if not messages:
            raise TraceError("contains no messages")
        info = row.object("info") or FieldTracker({})
        content = None
        if "task" in info:
            content = hashlib.sha256(canonical_json(info.peek("task")).encode()).hexdigest()[:8]
        else:
            row.warn(f"no domain given: task {task_id!r} of another domain would get the same group", "info")
        task = info.object("task") or FieldTracker({})
        expected = None if "actions" not in task else [_action(action) for action in task.objects("actions")]
        reward = row.number("reward")
        labels = [] if reward is None else [Label("reward", reward, source="benchmark")]
        facts = {
            "reference_tool_calls": expected,
            "group": group_name(task_id, content),
            "metadata": {"task_id": task_id, "task": task.leftover()},
        }
        name = task_id if trial is None else f"{task_id}#{trial}"
        return build_sample(row, index, {"messages": messages, "labels": labels}, identity=name, **facts)


def _action(action: FieldTracker) -> JsonObject:
    if not isinstance(action.peek("kwargs"), dict):
        raise action.type_error("kwargs", "an object")
    return {"name": action.take("name"), "args": action.take("kwargs"), "extra": action.leftover()}
