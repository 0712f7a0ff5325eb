"""The privacy statement: what was released, what it cost, and what each onlooker can learn."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from splitmeans.privacy.accountant import Cost, basic_composition
from splitmeans.privacy.events import Event, Relation
from splitmeans.study import Study


class ReleaseLike(Protocol):
    """What the statement needs to know about a release."""

    @property
    def party(self) -> str: ...  # noqa: D102
    @property
    def what(self) -> str: ...  # noqa: D102
    @property
    def event(self) -> Event: ...  # noqa: D102
    @property
    def cost(self) -> Cost: ...  # noqa: D102


# What the guarantee of each membership method rests on, and where it stops.
_CAVEATS = {
    "sketch-paper": (
        "The published bound does not cover sketches that share hash keys across parties: a user "
        "with a rare combination of clusters can lose more than the stated total. Use this method "
        "to reproduce the paper, not to protect people.",
    ),
    "ldp": (
        "Reports reveal how many users there are, and cover the cluster of a user at each party, "
        "not whether the user is present.",
    ),
    "independent": (),
    "exact": ("Every user's cluster at every party is sent as it is: no privacy at all.",),
}


@dataclass(frozen=True, kw_only=True)
class PrivacyReport:
    """The privacy side of a run; `statement()` says it in plain words."""

    study: Study
    releases: Sequence[ReleaseLike]
    secure_noise: bool

    @property
    def total(self) -> Cost:
        """The cost of all releases together, by the study's accounting."""
        return basic_composition(release.event for release in self.releases)

    @property
    def epsilon(self) -> float:
        """Total epsilon; infinite if something was released without protection."""
        return self.total.epsilon

    @property
    def delta(self) -> float:
        """Total delta."""
        return self.total.delta

    @property
    def caveats(self) -> tuple[str, ...]:
        """What a reader must know beside the numbers."""
        caveats: tuple[str, ...] = _CAVEATS[self.study.membership]
        if self.study.local == "plain":
            caveats += ("Local centres are exact k-means centres: no privacy at all.",)
        if not self.secure_noise:
            caveats += (
                "INSECURE TEST NOISE: the noise came from a seed, so nothing here is private.",
            )
        return caveats

    def statement(self) -> str:
        """Return the statement as text."""
        lines = [
            f"Privacy of study {self.study.name!r} (hash {self.study.hash[:16]})",
            f"  unit       {Relation.ADD_OR_REMOVE.value}",
            f"  total      {_cost_text(self.total)}, {self.study.accounting} accounting",
            "  releases",
        ]
        width = max(len(release.party) for release in self.releases)
        for release in self.releases:
            what = f"{release.party:<{width}}  {release.what:<16}"
            lines.append(f"    {what} {_cost_text(release.cost)}")
        lines += [
            "  who sees what",
            "    server     the releases above and the number and size of messages; never the run",
            "               key, an id or a row",
            "    parties    the published result; they know the run key, so no guarantee is",
            "               claimed towards a party that also sees another party's message",
            "    outsiders  the published result, which is computed from the releases alone",
            "    server and a party together: no guarantee",
        ]
        lines += [f"  NOTE: {caveat}" for caveat in self.caveats]
        return "\n".join(lines)

    def to_mapping(self) -> dict[str, Any]:
        """Return the statement as plain values for machines."""
        return {
            "study": self.study.name,
            "study_hash": self.study.hash,
            "relation": Relation.ADD_OR_REMOVE.name,
            "accounting": self.study.accounting,
            "epsilon": _json_number(self.epsilon),
            "delta": self.delta,
            "secure_noise": self.secure_noise,
            "releases": [
                {
                    "party": release.party,
                    "what": release.what,
                    "event": type(release.event).__name__,
                    "epsilon": _json_number(release.cost.epsilon),
                    "delta": release.cost.delta,
                }
                for release in self.releases
            ],
            "caveats": list(self.caveats),
        }


def _cost_text(cost: Cost) -> str:
    if math.isinf(cost.epsilon):
        return "no privacy"
    if cost.delta == 0:
        return f"epsilon {cost.epsilon:.4g}"
    return f"epsilon {cost.epsilon:.4g}, delta {cost.delta:.3g}"


def _json_number(value: float) -> float | None:
    """Infinity has no place in JSON; null says that there is no bound."""
    return None if math.isinf(value) else value
