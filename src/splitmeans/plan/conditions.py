"""What must be true for the bounds of a plan to hold, and what a reader must know with them."""

from collections.abc import Iterator

from splitmeans.plan import costs
from splitmeans.plan.noise_parameters import server_noise_of
from splitmeans.plan.plan import Plan
from splitmeans.privacy.accountant import cost_text
from splitmeans.study.counting import COUNTS_CAVEAT

DRAWN_NOISE = "noise comes from the operating system's secure source"
KEYED_NOISE = (
    "the parties' noise comes from the operating system's secure source; the server's own follows "
    "from its private key, which stays with the server, by ChaCha20 and HMAC-SHA256"
)
SIMULATED_CHANNEL = (
    "parties exchange key contributions over a channel the server can neither read nor change"
)
SEALED_CHANNEL = (
    "each party's key file and home stay with the party until the run has ended, when the run's "
    "own keys are erased, and the parties compared the study's digits"
)
ONE_ID = "one person is one id, spelled alike at every party"
KEY_USE = (
    "a run key is used once, and a message that was sent is resent as it is, never recomputed",
    "without the secret keys, outputs of SipHash and HKDF cannot be told from random ones, as "
    "cryptography assumes",
)
AGREED_BOUNDS = (
    "column bounds, categories and expected_users were not chosen by looking at the data"
)
LEARNED_BOUNDS = (
    "expected_users, categories, and column bounds but for those that the run learns, were not "
    "chosen by looking at the data"
)
SEEDED_NOISE = "INSECURE TEST NOISE: the noise came from a seed, so nothing here is private."


def assumptions_of(plan: Plan) -> Iterator[str]:
    """Yield what must be true for the bounds to hold."""
    study = plan.study
    with_keys = bool(study.public_keys)
    yield "no party shows the run key or another party's message to the server"
    yield SEALED_CHANNEL if with_keys else SIMULATED_CHANNEL
    apart = costs.cost_spelled_apart(plan)
    if apart is None:
        yield ONE_ID
    else:
        key = study.matching_key
        by = "ids" if key is None else f"{key.name}, the first key that all parties have,"
        yield (
            f"{ONE_ID} ({by} as {study.id_rules.type!r}); a person with a spelling of its own at "
            f"each of the {len(study.parties)} parties has {cost_text(apart)} instead of "
            f"{cost_text(costs.total_of(plan))}"
        )
    yield from KEY_USE
    yield AGREED_BOUNDS if study.all_public else LEARNED_BOUNDS
    # The server draws noise of its own where a bound towards parties rests on it.
    is_keyed = with_keys and server_noise_of(plan) is not None
    yield KEYED_NOISE if is_keyed else DRAWN_NOISE


def caveats_of(plan: Plan, *, secure_noise: bool) -> Iterator[str]:
    """Yield what a reader must know with the figures."""
    study = plan.study
    if not secure_noise:
        yield SEEDED_NOISE
    yield from study.membership_facts.caveats
    if study.counts_only:
        yield COUNTS_CAVEAT
    if study.budget.delta >= 1 / plan.assumed_users:
        yield (
            f"delta {study.budget.delta:g} is one over the users that were counted, or more: it "
            "alone would allow to publish one user's row whole. Take a smaller one to protect "
            "people."
        )
    unused = costs.unused_budget(plan)
    if unused is not None:
        yield unused
