"""The roles of labeled samples in an alignment: which are read, which choose, and which test."""

from collections.abc import Mapping, Sequence

from judgekit.analysis.matching import LabeledSample
from judgekit.errors import ConfigError, short_repr
from judgekit.runs.alignments import AlignmentRecord, LabelRole, assigned_role
from judgekit.runs.hashes import recording_key
from judgekit.traces.sample import Sample

_ORDER: Mapping[LabelRole, int] = {"train": 0, "validation": 1, "test": 2}


def assign_roles(
    labeled: Sequence[LabeledSample], samples: Mapping[int, Sample], earlier: Sequence[AlignmentRecord] = ()
) -> Mapping[int, LabelRole]:
    """Return the role of each labeled sample by its number.

    Roles on the sheet stand, even for other samples of the same group; `assigned_role` gives the others theirs. A
    recording that occurs twice has the first of its roles, and one that the question was aligned by before is read.

    Raises:
        ConfigError: Samples of one group have different roles on the sheet.
    """
    by_group: dict[str, LabelRole] = {}
    for labeled_sample in labeled:
        group = samples[labeled_sample.row.index].group
        role = labeled_sample.role
        if role is not None and group is not None and by_group.setdefault(group, role) != role:
            raise ConfigError(
                f"samples of the group {short_repr(group)} have the roles {by_group[group]} and {role}; give all of "
                "them one, since they are not independent"
            )
    roles: dict[int, LabelRole] = {}
    first: dict[str, LabelRole] = {}
    for labeled_sample in labeled:
        sample = samples[labeled_sample.row.index]
        role = labeled_sample.role or by_group.get(sample.group or "") or assigned_role(sample)
        if any(before.was_fitted_to(sample) for before in earlier):
            role = "train"
        key = recording_key(sample)
        if _ORDER[role] <= _ORDER[first.get(key, role)]:
            first[key] = role
        roles[labeled_sample.row.index] = role
    return {number: first[recording_key(samples[number])] for number in roles}
