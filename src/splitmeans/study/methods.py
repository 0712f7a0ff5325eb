"""The methods a study can name, with the plain facts about each that public code decides by.

Code asks a method's record, never for its name. What a method does is in its own folder; these are
the facts that a study is checked by and a statement is made of, so they depend on nothing else.
"""

from collections.abc import Mapping
from dataclasses import dataclass

TIGHT, PAPER = "tight", "paper"
ACCOUNTING_METHODS = (TIGHT, PAPER)

# From so many parties on pairs are so many that they get more of the budget.
MANY_PARTIES = 6


@dataclass(frozen=True, kw_only=True)
class MembershipFacts:
    """A way to tell which user is in which cluster of a party.

    Attributes:
        name: What studies call it.
        accountings: The accountings it has a cost in. The paper's way of adding costs up does not
            apply to methods with a proof of their own.
        budget_share: Share of the squared precision that tight accounting gives to the memberships;
            the parties' local clustering has the rest in equal parts. From the accuracy benchmark,
            see docs/concepts/budget.md. None without tight accounting.
        share_of_many: The same from `MANY_PARTIES` on, where it differs: their pairs share it.
        unproved: Why the stated total does not bound what a server can learn about a user added or
            removed, as a clause; None where the bound is proved.
        covers_replacing: Whether replacing a user's values has a stated cost towards the server.
        hides_from_parties: Whether costs towards other parties, and towards a party together with
            the server, can be bounded.
        caveats: What the guarantee rests on, and where it stops.
        machine_checked: Which part of the proof a machine has checked, in the words of
            docs/concepts/machine-checked.md and no more; None if none was.
        warning: Said to whoever simulates it; None where there is nothing to warn of.
        is_private: False for a baseline that hides nothing.
        needs_count: Whether the server must know the noisy number of users to read the messages.
        plans_by_size: Whether k', where the study leaves it open, follows from released numbers of
            users.
        grouped: Whether parties share a release in groups, under keys of their own.
        pairs_only: Whether more than two parties are read in pairs alone.
        partial_sets: Whether it can tell users who are at some parties only.
        counts_presence: Whether it can also count who is at which of three or more parties.
        grid_of_two: The grid method of two parties, where the study leaves it open.
        grid_of_more: That of three or more parties; "pairs" gives way to "many" for large grids.
        gamma: Base of the registers minus one, where the study leaves it open.
        rough_caution: What exact accounting may have less precision of than `forecasting.rough`
            says, as a share; the largest seen are 0.4 % and 2 %.
        loss_modelled: Whether the forecast of the loss was fitted to it.
    """

    name: str
    accountings: tuple[str, ...] = ACCOUNTING_METHODS
    budget_share: float | None
    unproved: str | None = None
    covers_replacing: bool = False
    hides_from_parties: bool = False
    caveats: tuple[str, ...]
    machine_checked: str | None = None
    warning: str | None = None
    is_private: bool = True
    needs_count: bool
    plans_by_size: bool = False
    grouped: bool
    pairs_only: bool = False
    partial_sets: bool
    counts_presence: bool = False
    grid_of_two: str
    grid_of_more: str
    gamma: float = 1.0
    rough_caution: float = 1.0
    loss_modelled: bool = False
    share_of_many: float | None = None

    def share_of(self, n_parties: int) -> float | None:
        """Return the memberships' share of the squared precision for so many parties."""
        if n_parties >= MANY_PARTIES and self.share_of_many is not None:
            return self.share_of_many
        return self.budget_share


@dataclass(frozen=True, kw_only=True)
class LocalFacts:
    """A way for a party to cluster its own columns.

    Attributes:
        name: What studies call it.
        accountings: The accountings it has a form for.
        unproved: As for memberships.
        caveats: What a reader of a statement must know.
        is_private: False for a baseline that hides nothing.
        gathers_rows: Whether it needs all rows in one place; others need sums only.
        n_points: How many synthetic points it releases beside its centres.
        takes_gaps: Whether rows may be without a value in a column (`missing = "skip"`).
    """

    name: str
    accountings: tuple[str, ...] = ACCOUNTING_METHODS
    unproved: str | None = None
    caveats: tuple[str, ...] = ()
    is_private: bool = True
    gathers_rows: bool
    n_points: int = 0
    takes_gaps: bool = False


DECOY = MembershipFacts(
    name="decoy",
    accountings=(TIGHT,),
    budget_share=0.5,
    hides_from_parties=True,
    caveats=(),
    machine_checked=(
        "that memberships of all parties together cost no more than their tables compose to, for "
        "ideal tags and decoys; not the program, and not the total"
    ),
    needs_count=False,
    plans_by_size=True,
    grouped=True,
    partial_sets=True,
    counts_presence=True,
    # One pair is all there is; "pairs" also removes what is probably noise.
    grid_of_two="pairs",
    grid_of_more="pairs",
    rough_caution=0.994,
    loss_modelled=True,
    share_of_many=0.7,
)
SKETCH = MembershipFacts(
    name="sketch",
    accountings=(TIGHT,),
    budget_share=0.5,
    caveats=(
        "Registers must never be shown to a party: the parties know the hash keys, and the "
        "guarantee is towards the server and outsiders only.",
    ),
    needs_count=False,
    plans_by_size=True,
    grouped=True,
    pairs_only=True,
    partial_sets=True,
    grid_of_two="joint",
    grid_of_more="pairs",
    gamma=0.1,
    rough_caution=0.975,
    loss_modelled=True,
)
SKETCH_PAPER = MembershipFacts(
    name="sketch-paper",
    accountings=(PAPER,),
    budget_share=None,
    unproved="the published bound does not cover hash keys that parties share",
    caveats=(
        "The published bound does not cover sketches that share hash keys across parties: a user "
        "with a rare combination of clusters can lose more than the stated total. Use this method "
        "to reproduce the paper, not to protect people.",
    ),
    warning=(
        "membership='sketch-paper' is for reproducing the paper: its published privacy bound does "
        "not hold when parties share hash keys. Take membership='decoy' or 'sketch' to protect "
        "people."
    ),
    needs_count=True,
    grouped=False,
    partial_sets=False,
    grid_of_two="joint",
    grid_of_more="pairs-paper",
)
LDP = MembershipFacts(
    name="ldp",
    budget_share=0.5,
    unproved="local reports do not hide whether a user is present",
    covers_replacing=True,
    caveats=(
        "Reports reveal how many users there are, and cover the cluster of a user at each party, "
        "not whether the user is present.",
    ),
    needs_count=False,
    grouped=False,
    partial_sets=False,
    grid_of_two="joint",
    grid_of_more="pairs-paper",
)
INDEPENDENT = MembershipFacts(
    name="independent",
    budget_share=0.2,
    caveats=(),
    needs_count=True,
    grouped=False,
    partial_sets=False,
    grid_of_two="joint",
    grid_of_more="joint",
)
EXACT = MembershipFacts(
    name="exact",
    budget_share=0.5,
    unproved="every user's cluster is sent as it is",
    caveats=("Every user's cluster at every party is sent as it is: no privacy at all.",),
    is_private=False,
    needs_count=False,
    grouped=False,
    partial_sets=False,
    grid_of_two="joint",
    grid_of_more="joint",
)

# Half as many points were a little worse in places, twice as many not better.
GUIDED_LLOYD = LocalFacts(
    name="guided-lloyd", accountings=(TIGHT,), gathers_rows=False, n_points=8192, takes_gaps=True
)
DPLSF = LocalFacts(name="dplsf", gathers_rows=True)
DPLLOYD = LocalFacts(name="dplloyd", gathers_rows=False)
PLAIN = LocalFacts(
    name="plain",
    unproved="local centres are computed without noise",
    caveats=("Local centres are exact k-means centres: no privacy at all.",),
    is_private=False,
    gathers_rows=True,
)

# A study of counts alone has no columns to cluster; no study can name it.
NO_CLUSTERING = LocalFacts(name="none", accountings=(TIGHT,), gathers_rows=False)

MEMBERSHIPS: Mapping[str, MembershipFacts] = {
    one.name: one for one in (DECOY, SKETCH, SKETCH_PAPER, LDP, INDEPENDENT, EXACT)
}
LOCALS: Mapping[str, LocalFacts] = {one.name: one for one in (GUIDED_LLOYD, DPLSF, DPLLOYD, PLAIN)}
# What came before it; studies may still say so, and get what is better.
OLD_LOCAL_NAMES = {"tree-lloyd": GUIDED_LLOYD.name, "histogram-lloyd": GUIDED_LLOYD.name}

# What local = "auto" stands for; docs/local-clustering.md compares them.
_AUTO_LOCAL = {TIGHT: GUIDED_LLOYD, PAPER: DPLSF}


def local_facts(local: str, *, membership: str, accounting: str) -> LocalFacts:
    """Return the local algorithm of a study; "auto" is as private as the membership method."""
    if local != "auto":
        return LOCALS[local]
    return _AUTO_LOCAL[accounting] if MEMBERSHIPS[membership].is_private else PLAIN
