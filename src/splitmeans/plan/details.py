"""What a study with detail releases besides: shapes within clusters, and tables of columns."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from splitmeans.local.laws.detail import DetailLaw, pairs_for
from splitmeans.membership.decoy.column_tables import (
    COLUMNS_SHARE,
    ColumnTables,
    column_tables,
    n_column_tables,
)
from splitmeans.membership.decoy.law import DecoyLaw
from splitmeans.membership.method import MembershipLaw
from splitmeans.privacy.split import Precisions
from splitmeans.study import Study
from splitmeans.study.coding import Coding


def detail_laws(
    study: Study, codings: Sequence[Coding], *, mu: float, about: float
) -> tuple[DetailLaw, ...]:
    """Return the law of each party's shapes.

    `mu` is what the shapes of one party may cost, `about` about the same by the study alone: a
    later plan has as many pairs as the first.
    """
    found = []
    for coding in codings:
        c = len(coding.levels)
        n_pairs = pairs_for(c, mu=about, users=study.assumed_users)
        found.append(DetailLaw(n_columns=c, n_pairs=n_pairs, mu=mu))
    return tuple(found)


def tables_of_columns(
    study: Study,
    precisions: Precisions,
    codings: Sequence[Coding],
    *,
    n_groups: float,
    law_at: Callable[[Precisions], MembershipLaw],
) -> ColumnTables | None:
    """Return the tables of columns of a run, if it has any.

    Their squared precisions are together `COLUMNS_SHARE` of all memberships'.

    The precision of memberships is of one group, of `n_groups` that there are as much as;
    `law_at` is the law of the decoys at some precision.
    """
    n_tables = n_column_tables(study)
    if not n_tables:
        return None
    factor = math.sqrt(n_groups / n_tables * COLUMNS_SHARE / (1 - COLUMNS_SHARE))
    server = None if precisions.server is None else factor * precisions.server
    law = law_at(replace(precisions, membership=factor * precisions.membership, server=server))
    assert isinstance(law, DecoyLaw), "only decoys count columns"
    return column_tables(study, law, codings)
