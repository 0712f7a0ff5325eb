"""The noise of every release as whole numbers: what a reader needs to compute epsilon again.

`docs/concepts/certificate.md` computes it in a few lines that use nothing of this package.
"""

from collections import Counter
from fractions import Fraction
from typing import Any, assert_never

from splitmeans.membership.decoy.law import DecoyLaw
from splitmeans.membership.methods import method_of
from splitmeans.plan.plan import Plan
from splitmeans.privacy.events import (
    CellSketchEvent,
    ComposedEvent,
    CountGaussianEvent,
    Event,
    GaussianEvent,
    RandomisedResponseEvent,
    RareEvent,
    ShiftEvent,
)
from splitmeans.privacy.pld import flatten


def parts_of(plan: Plan, event: Event) -> tuple[dict[str, Any], ...]:
    """Return the simple parts of a release's event: how many times each, and its noise.

    Fractions are [numerator, denominator].
    """
    counted = Counter(flatten((event,)))
    return tuple({"times": times, **_part(part, plan)} for part, times in counted.items())


def server_noise_of(plan: Plan) -> dict[str, Any] | None:
    """Return the server's own noise, which alone protects counts from parties; None without."""
    scale_of = method_of(plan.study).server_noise
    if scale_of is None:
        return None
    noise: dict[str, Any] = {
        "law": "discrete gaussian",
        "scale": _ratio(scale_of(plan.membership)),
        "groups": [list(group) for group in plan.groups],
    }
    if plan.presence is not None:
        # The last group is the presence table, with noise of its own.
        noise["presence_scale"] = _ratio(plan.presence.server_sigma)
    if plan.columns is not None:
        # Tables of columns, with noise of their own; parties and columns of each.
        noise["columns"] = {
            "scale": _ratio(plan.columns.law.server_sigma),
            "tables": [list(table.place) for table in plan.columns.tables],
        }
    return noise


def _part(event: Event, plan: Plan) -> dict[str, Any]:
    """Return the law of one simple event and its whole numbers."""
    match event:
        case GaussianEvent(noise_multiplier=multiplier, realised=realised):
            numbers = {} if realised is None else realised._asdict()
            return {"law": "discrete gaussian", "mu": 1 / multiplier, **numbers}
        case RandomisedResponseEvent(epsilon=epsilon):
            return {"law": "randomised response", "epsilon": _ratio(epsilon)}
        case ShiftEvent(weights=weights):
            columns = None if plan.columns is None else plan.columns.law
            laws = (plan.membership, plan.presence, columns)
            law = next(one for one in laws if isinstance(one, DecoyLaw) and one.weights == weights)
            return {
                "law": "truncated discrete gaussian",
                "scale": _ratio(law.sigma),
                "truncation": law.truncation,
                "table_sum": sum(weights),
                "table_sha256": law.table_hash,
                "sensitivity": 1,
            }
        case CellSketchEvent():
            return {
                "law": "maximum of geometric values",
                "gamma": _ratio(event.gamma),
                "phantoms": event.phantoms,
                "floor": event.floor,
                "repetitions": event.repetitions,
            }
        case RareEvent(probability=probability):
            return {"law": "rare outcomes", "probability": _ratio(probability)}
        case CountGaussianEvent() | ComposedEvent():
            raise AssertionError("no release has such a part: composed events were taken apart")
        case _:
            assert_never(event)


def _ratio(number: float) -> list[int]:
    """Return a float as the fraction that it is, exactly."""
    exact = Fraction(number)
    return [exact.numerator, exact.denominator]
