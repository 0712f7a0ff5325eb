"""A certificate: the whole numbers of every release, and epsilon with two sides.

Small enough to read, and complete enough to check with a few lines that use nothing of this package
(docs/concepts/certificate.md). It has public values only.

A result folder has what the server signs: all of it except the lower bound, which anyone can
compute and whose last digits may differ between machines; nothing that differs may be met after a
charge.
"""

import math
from collections import Counter
from fractions import Fraction
from typing import Any, assert_never

from splitmeans.membership.decoy.law import DecoyLaw
from splitmeans.membership.methods import method_of
from splitmeans.plan.attended_runs import unit_of
from splitmeans.plan.plan import Plan
from splitmeans.plan.releases import releases_of
from splitmeans.plan.statement import PrivacyReport
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
from splitmeans.privacy.lower_bound import epsilon_at_least
from splitmeans.privacy.pld import flatten, gap_of
from splitmeans.study.plain_values import to_plain

FORMAT = 1


def certificate_of(plan: Plan) -> dict[str, Any]:
    """Return the certificate of a plan as plain values; fractions are [numerator, denominator]."""
    claims = claims_of(plan)
    report = PrivacyReport(plan=plan, secure_noise=True)
    delta = plan.study.budget.delta
    lower = epsilon_at_least(plan.lifetime_events, delta, interval=report.interval)
    return {**claims, "epsilon": {**claims["epsilon"], "lower": lower}}


def claims_of(plan: Plan) -> dict[str, Any]:
    """Return a certificate without the lower bound: what is signed."""
    study = plan.study
    certificate = {
        "format": FORMAT,
        "study_hash": study.hash,
        "plan": plan.fingerprint,
        "relation": unit_of(study),
        "budget": to_plain(study.budget),
        "releases": [
            {
                "party": release.party,
                "what": release.what,
                "parts": [
                    {"times": times, **_part(event, plan)}
                    for event, times in Counter(flatten((release.event,))).items()
                ],
            }
            for release in releases_of(plan)
        ],
        "epsilon": _upper(plan),
    }
    if plan.series_run is not None or study.renewal is not None:
        # Releases are those of one run; epsilon is of so many.
        certificate["runs"] = study.n_runs
    towards_party = PrivacyReport(plan=plan, secure_noise=True).towards_party
    server_noise = method_of(study).server_noise
    if server_noise is not None and towards_party is not None:
        # Parties know the decoys: docs, "Towards another party".
        certificate["server_noise"] = {
            "law": "discrete gaussian",
            "scale": _ratio(server_noise(plan.membership)),
            "groups": [list(group) for group in plan.groups],
        }
        if plan.presence is not None:
            # The last group is the presence table, with noise of its own.
            certificate["server_noise"]["presence_scale"] = _ratio(plan.presence.server_sigma)
        if plan.columns is not None:
            # Tables of columns, with noise of their own; parties and columns of each.
            certificate["server_noise"]["columns"] = {
                "scale": _ratio(plan.columns.law.server_sigma),
                "tables": [list(table.place) for table in plan.columns.tables],
            }
        what, cost = towards_party
        certificate["towards_party"] = {
            "of": what,
            "upper": cost.epsilon if math.isfinite(cost.epsilon) else None,
        }
    return certificate


def _upper(plan: Plan) -> dict[str, float]:
    report = PrivacyReport(plan=plan, secure_noise=True)
    gap = gap_of(flatten(plan.lifetime_events))
    return {
        "delta": plan.study.budget.delta,
        "upper": report.epsilon,
        # How far what is drawn may be from the laws above, as it was charged.
        "extra_loss": gap.loss,
        "extra_delta": gap.delta(report.epsilon),
    }


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
