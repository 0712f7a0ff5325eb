"""A study of counts alone: how many users are at which parties, and nothing about them.

The question before a project: is it worth it? `n_clusters = 1` asks it. Parties list no columns, so
no column is read, no local clustering is released, and the whole budget goes to one table that
counts who is at which parties (`membership/decoy/layout.py`, presence table).
"""

from typing import TYPE_CHECKING

from splitmeans.errors import StudyError

if TYPE_CHECKING:
    from splitmeans.study.study import Study


# What a statement says of such a study.
USER_ELSEWHERE = "whether somebody is a user elsewhere"
COUNTS_CAVEAT = (
    "Counts alone: no column is read, and nothing about a user is released but at which parties it "
    "is one, as numbers with noise."
)


def check_counting(study: "Study") -> None:
    """Refuse a party without columns where segments are wanted, and more than counts where not."""
    if not study.counts_only:
        for party in study.parties:
            if not party.columns:
                raise StudyError(
                    f"party {party.name!r} must have at least one column; only a study of counts "
                    "alone (n_clusters = 1) has none"
                )
        return
    for party in study.parties:
        if party.columns:
            raise StudyError(
                "n_clusters must be >= 2, got 1, which is for a study of counts alone: it reads no "
                f"column, but party {party.name!r} lists some; leave them out, or ask for more "
                "segments"
            )
    fixed = {
        "membership": ("decoy", study.membership),
        "n_local_clusters": ("auto", study.n_local_clusters),
        "population": (None, study.population),
        "scaling": (None, study.scaling),
    }
    for name, (only, given) in fixed.items():
        if given != only:
            wanted = "be left out" if name != "membership" else f"be {only!r}"
            raise StudyError(
                f"{name} must {wanted} in a study of counts alone (n_clusters = 1), got {given!r}: "
                "no columns are clustered"
            )
    if study.decoy.collusion_epsilon is not None:
        raise StudyError(
            "decoy.collusion_epsilon must be left out in a study of counts alone (n_clusters = 1): "
            "it randomises labels, and there are none"
        )
