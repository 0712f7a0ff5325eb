"""A study's parties as a run goes on: with the bounds that its stages have released.

The study stays what was agreed. Whatever needs features, from clustering to the report, takes the
parties of the plan (`Plan.parties`), which follow from the study and released values alone, so all
participants come to the same ones.
"""

from collections.abc import Sequence
from dataclasses import replace

from splitmeans.plan.bounds_stage import BOUNDS, BoundsLaw, decode_bounds, with_bounds
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
            if stage.name == BOUNDS and isinstance(law, BoundsLaw):
                values = released[number][at] if number < len(released) else law.assumed
                columns = with_bounds(parties[name], decode_bounds(values))
                parties[name] = replace(parties[name], columns=columns)
    return tuple(parties[name] for name in study.party_names)
