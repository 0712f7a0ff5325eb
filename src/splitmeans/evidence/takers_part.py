"""Who takes part in a study, in which role, and who can learn what."""

from splitmeans.evidence.pages import Section
from splitmeans.plan.statement import PrivacyReport
from splitmeans.privacy.accountant import cost_text
from splitmeans.study import Study
from splitmeans.wire.identity import PublicIdentity
from splitmeans.wire.slot import SERVER


def participants(study: Study) -> Section:
    """Return everybody with the key by which the study knows them."""
    keys = study.public_keys

    def fingerprint(name: str) -> str:
        return PublicIdentity.from_text(keys[name]).fingerprint if name in keys else "none"

    rows = [
        (party.name, _part(study, len(party.columns)), fingerprint(party.name))
        for party in study.parties
    ]
    rows.append((SERVER, "combines what the organisations send; has no data", fingerprint(SERVER)))
    return Section(
        heading="Who takes part",
        head=("Name in the study", "Part", "Fingerprint of its key"),
        rows=tuple(rows),
        notes=(
            "Whoever carries the messages (a shared folder, a relay) sees who sends to whom, when, "
            "and how many bytes, and can open none of them.",
        ),
    )


def _part(study: Study, n_columns: int) -> str:
    if study.counts_only:
        return "knows whom it has; none of its columns about people takes part"
    return f"holds {n_columns} column{'' if n_columns == 1 else 's'} about people"


def onlookers(report: PrivacyReport) -> Section:
    """Return who sees what and which bound holds."""
    return Section(
        heading="Who can learn what",
        text=(
            'A bound is given as epsilon and delta, with the meaning above. "No guarantee" says '
            "that the method does not limit what this onlooker learns.",
        ),
        head=("Who", "Sees", "Bound"),
        rows=tuple(
            (
                view.who,
                view.sees,
                "; ".join(
                    f"{what}: {'no guarantee' if cost is None else cost_text(cost)}"
                    for what, cost in view.bounds
                ),
            )
            for view in report.views
        ),
        notes=tuple(f"This holds if {assumption}." for assumption in report.assumptions)
        + tuple(f"Note: {caveat}" for caveat in report.caveats),
    )
