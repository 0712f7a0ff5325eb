"""Methods without a proved bound run only where a study allows them by name."""

from typing import TYPE_CHECKING

from splitmeans.errors import StudyError

if TYPE_CHECKING:
    from splitmeans.study.study import Study


def why_unproved(study: "Study") -> str | None:
    """Return which methods of a study have no proved bound, and why; None if all have one."""
    named = {"membership": study.membership_facts}
    # "auto" is never less private than the memberships, which are named then.
    facts = named if study.local == "auto" else named | {"local": study.local_facts}
    clauses = [
        f"{argument}={method.name!r} ({method.unproved})"
        for argument, method in facts.items()
        if method.unproved is not None
    ]
    return " and ".join(clauses) or None


def check_unproved(study: "Study") -> None:
    """Refuse methods without a proved bound, unless the study allows them."""
    if not isinstance(study.allow_unproved, bool | None):
        raise StudyError(f"allow_unproved must be true or false, got {study.allow_unproved!r}")
    why = why_unproved(study)
    if why is not None and not study.allow_unproved:
        raise StudyError(
            f"no privacy bound is proved for {why}; take the defaults (membership='decoy', "
            "local='auto'), or set allow_unproved=True to simulate it all the same"
        )
    if why is None:  # no effect, so the hash of what is left out
        object.__setattr__(study, "allow_unproved", None)
