"""A party looks at the published result before using it.

Who sent it, and for which run, the seal has shown already. Here: that it belongs to the plan that
was run, that it is built on the centres that this party released, and that the server signed it
together with the privacy facts. A server can still publish a wrong result; that costs accuracy,
never privacy.
"""

import numpy as np

from splitmeans._types import IntArray
from splitmeans.errors import ProtocolError
from splitmeans.party.session import Session
from splitmeans.plan.facts import PrivacyFacts
from splitmeans.plan.plan import Plan
from splitmeans.result.publish import local_centres_of, published_facts, read_published
from splitmeans.wire.messages import PublishedResult


def check_result(
    session: Session,
    plan: Plan,
    result: PublishedResult,
    *,
    released_centres: IntArray,
    secure_noise: bool,
) -> None:
    """Refuse a result that cannot come from this run.

    `released_centres` are the party's own, shape (k', d). `secure_noise` is whether the party's
    noise comes from a secure source.

    Raises:
        ProtocolError: If it does not fit.
    """
    key = session.study.server_key
    synopsis = read_published(plan, result)
    position = session.study.party_names.index(session.party)
    if not np.array_equal(local_centres_of(plan, result)[position], released_centres):
        raise ProtocolError(
            f"the published result is not built on the centres that party {session.party!r} "
            "released"
        )
    if key is None or session.simulated:
        return
    privacy = PrivacyFacts.of(plan, secure_noise=secure_noise)
    facts = published_facts(plan, privacy, synopsis, result, run=session.run)
    if not facts.signed_by(key, result.signature):
        raise ProtocolError("the published result is not signed with the server's key")
