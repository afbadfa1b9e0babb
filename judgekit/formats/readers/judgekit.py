"""judgekit's own format: one `Sample` a line, or one `Trace`."""

from pydantic import JsonValue, ValidationError

from judgekit.errors import TraceError, explain
from judgekit.formats.readers.foreign import RowReader, items, must_be_object
from judgekit.traces.sample import Sample
from judgekit.traces.trace import Trace


class JudgekitReader(RowReader):
    """Samples and traces as judgekit writes them (``judgekit schema`` prints the JSON Schema)."""

    name = "judgekit"
    shape = 'judgekit: {"id": ..., "trace": {"messages": [...]}, "reference": ...}'

    def recognises(self, value: JsonValue) -> bool:
        """A sample has a trace, with fields of one; a trace has a schema version beside its messages."""
        record = next(iter(items(value)), None)
        if not isinstance(record, dict):
            return False
        trace = record.get("trace")
        if isinstance(trace, dict):
            return not trace or not Trace.model_fields.keys().isdisjoint(trace)
        return "schema_version" in record and "messages" in record

    def sample(self, record: JsonValue, index: int) -> Sample:
        """A sample, or a trace as a sample. Without an id, the index names it."""
        found = must_be_object(record)
        if "trace" not in found:
            found = {"id": found.get("id"), "trace": found}
        try:
            return Sample.model_validate({**found, "id": str(index) if found.get("id") is None else found["id"]})
        except ValidationError as error:
            raise TraceError(explain(error, record)) from error
