"""Which guarantee does not hold for the chosen methods: the first lines of a statement."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from splitmeans.paper.algorithm1 import Settings

_SEEDED = "NOT PRIVATE: the noise comes from a seed, so it hides nothing"
_OF_MEMBERSHIP = {
    "exact": "NOT PRIVATE: membership='exact' sends every user's cluster as it is",
    "dpfmps": (
        "NOT PROVED: the published privacy bound of membership='dpfmps' does not hold when parties "
        "share hash keys"
    ),
    "ldp-agg": (
        "NOT PROVED: membership='ldp-agg' does not hide who is a user, only which cluster a user "
        "is in"
    ),
}
_OF_LOCAL = {"plain": "NOT PRIVATE: local='plain' releases centres without noise"}


def missing_guarantees(settings: "Settings") -> tuple[str, ...]:
    """Return a sentence for each chosen method without the stated guarantee, the worst first."""
    found = (_OF_MEMBERSHIP.get(settings.membership), _OF_LOCAL.get(settings.local))
    sentences = [sentence for sentence in found if sentence is not None]
    return tuple(sorted(sentences, key=lambda sentence: sentence.startswith("NOT PROVED")))


def statement(settings: "Settings", *, secure_noise: bool) -> str:
    """Return what a run claims as text; what does not hold comes first."""
    budget = settings.budget
    lines = [
        *(() if secure_noise else (_SEEDED,)),
        *missing_guarantees(settings),
        f"budget as published: epsilon {settings.epsilon:g}, delta {settings.delta:g}, of which",
    ]
    if settings.needs_count:
        lines.append(f"  number of users: epsilon {budget.epsilon_0:.4g}")
    if settings.local != "plain":
        lines.append(f"  centres of each party: epsilon {budget.epsilon_1:.4g}")
    if settings.membership != "exact":
        lines.append(
            f"  memberships of each party: epsilon {budget.epsilon_2:.4g}, "
            f"delta {budget.delta_2:.3g}"
        )
    lines.append("use splitmeans.VerticalKMeans to protect people")
    return "\n".join(lines)
