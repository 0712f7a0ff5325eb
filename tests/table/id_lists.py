"""Ids as a list, brought to their form and compared, as a table's id column is."""

from typing import Any

import numpy as np
import pyarrow as pa

from splitmeans.errors import DataError
from splitmeans.study.id_rules import AS_IS, IdRules
from splitmeans.table.ids.canonical import canonical_text, repeated_ids
from splitmeans.table.walk.memory import MemoryUsers


def canonical_ids(values: Any, *, rules: IdRules = AS_IS) -> pa.LargeStringArray:
    """Return ids in canonical form; what breaks the rules, or is there twice, is refused."""
    text = canonical_text(values, rules=rules)
    users = MemoryUsers(ids=text, labels=np.zeros(len(text), dtype=np.int32))
    for problem in repeated_ids(users, rules=rules):
        raise DataError(str(problem))
    return text
