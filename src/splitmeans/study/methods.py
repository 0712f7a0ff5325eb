"""The membership methods a study can name, with the facts about each that public code decides by.

Code asks a method's record, never for its name. What a method does is in its own folder; these are
the facts that a study is checked by and a statement is made of, so they depend on nothing else.
"""

from collections.abc import Mapping
from dataclasses import dataclass

# From so many parties on pairs are so many that they get more of the budget.
MANY_PARTIES = 6

# Synthetic points that each party releases: half as many were a little worse in places, twice as
# many not better.
N_POINTS = 8192

# Share of the squared precision that the memberships get; the parties' local clustering has the
# rest in equal parts. From the accuracy benchmark, see docs/concepts/budget.md.
_BUDGET_SHARE = 0.5


@dataclass(frozen=True, kw_only=True)
class MembershipFacts:
    """A way to tell which user is in which cluster of a party.

    Attributes:
        name: What studies call it.
        share_of_two: Share of the squared precision for memberships of two parties.
        share_of_many: The same from `MANY_PARTIES` on, whose pairs share it.
        hides_from_parties: Whether costs towards other parties, and towards a party together with
            the server, can be bounded.
        counts_presence: Whether it counts who is at which parties, as three or more parties need.
        caveats: What the guarantee rests on, and where it stops.
        machine_checked: Which part of the proof a machine has checked, in the words of
            docs/concepts/machine-checked.md and no more; None if none was.
        rough_caution: What exact accounting may have less precision of than `forecasting.rough`
            says, as a share; the largest seen are 0.4 % and 2 %.
    """

    name: str
    share_of_two: float
    share_of_many: float
    hides_from_parties: bool
    counts_presence: bool
    caveats: tuple[str, ...]
    machine_checked: str | None
    rough_caution: float

    def share_of(self, n_parties: int) -> float:
        """Return the memberships' share of the squared precision for a number of parties."""
        if n_parties >= MANY_PARTIES:
            return self.share_of_many
        return self.share_of_two if n_parties == 2 else _BUDGET_SHARE


# Of two parties less: with more, a fellow party could learn more about whether somebody is a user
# elsewhere than the server can.
DECOY = MembershipFacts(
    name="decoy",
    share_of_two=0.25,
    share_of_many=0.7,
    hides_from_parties=True,
    counts_presence=True,
    caveats=(),
    machine_checked=(
        "that memberships of all parties together cost no more than their tables compose to, for "
        "ideal tags and decoys; not the program, and not the total"
    ),
    rough_caution=0.994,
)
SKETCH = MembershipFacts(
    name="sketch",
    share_of_two=_BUDGET_SHARE,
    share_of_many=_BUDGET_SHARE,
    hides_from_parties=False,
    counts_presence=False,
    caveats=(
        "Registers must never be shown to a party: the parties know the hash keys, and the "
        "guarantee is towards the server and outsiders only.",
    ),
    machine_checked=None,
    rough_caution=0.975,
)

MEMBERSHIPS: Mapping[str, MembershipFacts] = {one.name: one for one in (DECOY, SKETCH)}
