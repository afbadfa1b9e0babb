"""judgekit's own format: one `Sample` or one `Trace` per line."""

from pydantic import JsonValue, ValidationError

from judgekit.errors import TraceError, validation_message
from judgekit.formats.readers.base import RowReader, first_record, require_object
from judgekit.traces.sample import Sample
from judgekit.traces.trace import Trace


class JudgekitReader(RowReader):
    """A reader of samples and traces as judgekit writes them (``judgekit schema`` prints the JSON Schema)."""

    name = "judgekit"
    shape = 'judgekit: {"id": ..., "trace": {"messages": [...]}, "reference": ...}'

    def recognizes(self, value: JsonValue) -> bool:
        """Recognize samples by a trace with its fields, and traces by a schema version and messages."""
        record = first_record(value)
        if not isinstance(record, dict):
            return False
        trace = record.get("trace")
        if isinstance(trace, dict) and "observations" not in {*record, *trace}:
            return not trace or not Trace.model_fields.keys().isdisjoint(trace)
        return "schema_version" in record and "messages" in record

    def sample(self, record: JsonValue, index: int) -> Sample:
        """Read a sample, or a trace as a sample. Without an id, the index is its name."""
        fields = require_object(record)
        if "trace" not in fields:
            fields = {"id": fields.get("id"), "trace": fields}
        try:
            return Sample.model_validate({**fields, "id": str(index) if fields.get("id") is None else fields["id"]})
        except ValidationError as error:
            raise TraceError(validation_message(error, record)) from error
