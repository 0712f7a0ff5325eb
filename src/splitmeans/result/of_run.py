"""What a run published, as the fields of a `Result`: before it is a folder, or without one."""

from collections.abc import Sequence
from typing import Any

from splitmeans._version import __version__
from splitmeans.plan.facts import PrivacyFacts
from splitmeans.plan.plan import Plan
from splitmeans.result.publish import published_facts, read_published
from splitmeans.result.signed import dates_text, utc_now
from splitmeans.wire.messages import PublishedResult

# One line of the transcript: "sent" or "taken", path of the slot, SHA-256 of the sealed bytes.
TranscriptLine = tuple[str, str, str]

# Who writes a result of a run in one process, and what such a run is called.
SIMULATION = "simulation"


def fields_of_run(
    plan: Plan,
    privacy: PrivacyFacts,
    message: PublishedResult,
    *,
    run: str = SIMULATION,
    participant: str = SIMULATION,
    transcript: Sequence[TranscriptLine] = (),
    written_at: str | None = None,
) -> dict[str, Any]:
    """Return the fields of a `Result`.

    `privacy` is what the run cost. The transcript has the messages that this participant sent and
    took, none in a simulation. `written_at` is in UTC, by default now.
    """
    study = plan.study
    synopsis = read_published(plan, message)
    facts = published_facts(plan, privacy, synopsis, message, run=run)
    written_at = written_at or utc_now()
    # A simulation is signed by nobody.
    key = study.server_key if message.signature else None
    dates = dates_text(facts, key=key, participant=participant, written_at=written_at)
    return {
        "folder": None,
        "study": study,
        "synopsis": synopsis,
        "published_centres": message.centres,
        "published_sizes": message.sizes,
        "released": facts.released,
        "privacy": privacy,
        "statement": f"{privacy.statement()}\n{dates}",
        "facts": {
            "splitmeans": __version__,
            "study": study.name,
            "participant": participant,
            "written_at": written_at,
            "result_hash": facts.digest,
            "study_hash": facts.study_hash,
            "run": facts.run,
            "plan": facts.plan,
            "published_at": facts.published_at,
        },
        "signed": bool(message.signature),
        "messages": tuple(
            {"direction": direction, "slot": path, "sha256": digest}
            for direction, path, digest in transcript
        ),
        "signed_facts": facts,
        "signature": message.signature,
        "presence": message.presence,
    }
