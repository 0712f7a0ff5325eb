"""What is kept where and for how long: facts of the software, for records and assessments."""

from splitmeans.evidence.pages import Section

_KEPT = (
    (
        "Rows of each organisation",
        "at that organisation, never elsewhere",
        "as long as that organisation keeps its table; the run makes no copy that outlives it",
    ),
    (
        "Blocks of a large table (home, spool)",
        "at that organisation, readable by its owner alone",
        "removed when the run ends or stops; after a crash at the next start",
    ),
    (
        "The run key and the state of a run (home)",
        "at each organisation",
        "erased when the run ends; without the key real records cannot be told from invented ones",
    ),
    (
        "The keys that messages of a run are sealed to (home, run-keys)",
        "at each participant, encrypted under its long-term key",
        "erased when the run ends; from then on no stolen long-term key opens a recorded message",
    ),
    (
        "Sealed messages (home, outbox)",
        "at each participant",
        "removed when the run has ended; their hashes stay",
    ),
    (
        "Sealed messages (mailbox or relay)",
        "with whoever runs it; only the receiver can open them",
        "until that operator removes them: do so when every participant has the result "
        "(`splitmeans relay study purge`)",
    ),
    (
        "The result: segments, sizes, noisy counts, statement, certificate",
        "at every participant",
        "as the participants agree; it holds no row and no identifier",
    ),
    (
        "The ledger (home)",
        "at each organisation that has data",
        "as long as the data is used for any study: it keeps later runs within the limit",
    ),
    (
        "This archive, once made",
        "with whoever it was given to",
        "as your rules for records say",
    ),
    (
        "Segments of an organisation's own people, if it makes such a file",
        "at that organisation",
        "personal data: like the table that they were made from",
    ),
)


def retention() -> Section:
    """Return the table."""
    return Section(
        heading="What is kept, where, and for how long",
        head=("What", "Where", "How long"),
        rows=_KEPT,
    )
