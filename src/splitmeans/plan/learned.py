"""What a run learns of columns before it clusters them, in words: before it, and after."""

from collections.abc import Iterator

from splitmeans.plan.bounds_stage import FOUND, BoundsLaw, LearnedBounds, decode_bounds, noise_share
from splitmeans.plan.categories_stage import CategoriesLaw, decode_names, threshold_text
from splitmeans.plan.plan import Plan
from splitmeans.plan.stages import StageLaw
from splitmeans.privacy.split import bounds_shares
from splitmeans.study import Column
from splitmeans.study.parties import OTHER_LEVEL


def learned_lines(plan: Plan) -> tuple[str, ...]:
    """Return a line for each party that learns something: what, from how much, how sure.

    Of a plan that knows the released values: what was learned.
    """
    return tuple(
        f"{party}: {line}"
        for number, stage in enumerate(plan.stages)
        for at, party in enumerate(stage.parties)
        for line in _lines(
            plan,
            party,
            stage.law_of(party),
            plan.released[number][at] if number < len(plan.released) else None,
        )
    )


def about_bounds(plan: Plan) -> str | None:
    """Return what to say of learned bounds that may be far off; None if there are none."""
    doubtful = [
        f"{party}: {column.name} {_range_text(own)}"
        for stage, released in zip(plan.stages, plan.released, strict=False)
        for party, values in zip(stage.parties, released, strict=True)
        if isinstance(stage.law_of(party), BoundsLaw)
        for column, own in zip(_private(plan, party), decode_bounds(values), strict=True)
        if own.state != FOUND
    ]
    if not doubtful:
        return None
    return (
        f"learned bounds may be far off at {'; '.join(doubtful)}. Public bounds (low and high) "
        "help where the range is known"
    )


def _private(plan: Plan, party: str) -> list[Column]:
    return [column for column in plan.study.party(party).columns if column.is_private]


def _lines(plan: Plan, party: str, law: StageLaw, values: tuple[int, ...] | None) -> Iterator[str]:
    if isinstance(law, CategoriesLaw):
        yield _about_categories(law, values)
    if not isinstance(law, BoundsLaw):
        return
    names = [column.name for column in _private(plan, party)]
    if values is not None:
        found = zip(names, decode_bounds(values), strict=True)
        yield "; ".join(f"{name} {_range_text(own)}" for name, own in found)
        return
    share = bounds_shares(plan.study)[plan.study.party_names.index(party)]
    sure = noise_share(law, users=plan.study.assumed_users)
    yield (
        f"bounds of {', '.join(names)}, from {100 * share:.2g} % of the budget; quantiles are off "
        f"by about {100 * sure:.2g} % of the users"
    )


def _about_categories(law: CategoriesLaw, values: tuple[int, ...] | None) -> str:
    columns = [column.name for column in law.columns]
    if values is not None:
        found = zip(columns, decode_names(values), strict=True)
        return "; ".join(f"{name} {_names_text(own)}" for name, own in found)
    return (
        f"categories of {', '.join(columns)} that more than about {threshold_text(law)} users "
        f"have; one that a single user has shows with probability {law.shown:.2g}"
    )


def _names_text(names: tuple[str, ...]) -> str:
    return " | ".join((*names, OTHER_LEVEL))


def _range_text(own: LearnedBounds) -> str:
    remark = "" if own.state == FOUND else f" ({own.remark})"
    return f"{own.low:.12g} to {own.high:.12g}{remark}"
