"""A party looks at the published result before using it.

Who sent it, and for which run, the seal has shown already. Here: that it belongs to the plan that
was run, and that it is built on the centres that this party released. A server can still publish a
wrong result; that costs accuracy, never privacy.
"""

import numpy as np

from splitmeans._types import IntArray
from splitmeans.errors import ProtocolError
from splitmeans.plan import Plan
from splitmeans.published import local_centres_of, read_published
from splitmeans.wire.messages import PublishedResult


def check_result(
    plan: Plan, party: str, result: PublishedResult, *, released_centres: IntArray
) -> None:
    """Refuse a result that cannot come from this run.

    Args:
        plan: The plan that the party followed.
        party: The party's name.
        result: What the server published.
        released_centres: The party's own released centres, shape (k', d).

    Raises:
        ProtocolError: If it does not fit.
    """
    read_published(plan, result)
    position = plan.study.party_names.index(party)
    if not np.array_equal(local_centres_of(plan, result)[position], released_centres):
        raise ProtocolError(
            f"the published result is not built on the centres that party {party!r} released"
        )
