"""A study's parties as a run goes on: with the bounds and categories that its stages released.

The study stays what was agreed. Whatever needs features, from clustering to the report, takes the
parties of the plan (`Plan.parties`), which follow from the study and released values alone, so all
participants come to the same ones.
"""

from collections.abc import Sequence
from dataclasses import replace

from splitmeans.plan.bounds_stage import BoundsLaw, decode_bounds, with_bounds
from splitmeans.plan.categories_stage import CategoriesLaw, decode_names, with_categories
from splitmeans.plan.stages import ReleasedValues, Stage
from splitmeans.study import PartySpec, Study


def settled_parties(
    study: Study, stages: Sequence[Stage], released: ReleasedValues
) -> tuple[PartySpec, ...]:
    """Return the parties with what was learned; what was not yet is assumed."""
    parties = {party.name: party for party in study.parties}
    for number, stage in enumerate(stages):
        for at, name in enumerate(stage.parties):
            law = stage.law_of(name)
            if not isinstance(law, BoundsLaw | CategoriesLaw):
                continue
            values = released[number][at] if number < len(released) else law.assumed
            if isinstance(law, BoundsLaw):
                columns = with_bounds(parties[name], decode_bounds(values))
            else:
                columns = with_categories(parties[name], decode_names(values))
            parties[name] = replace(parties[name], columns=columns)
    return tuple(parties[name] for name in study.party_names)
