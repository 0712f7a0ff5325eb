"""`splitmeans ledger limit`, `default`, `guard`, `four-eyes`, `approve`: what may be spent."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from splitmeans.cli.console import err, print_text
from splitmeans.cli.home import HOME_OPTION, KEY_OPTION, load_identity
from splitmeans.cli.passphrase import FD_OPTION, FILE_OPTION
from splitmeans.errors import ParameterError
from splitmeans.privacy.four_eyes import Signer, words_of
from splitmeans.privacy.ledger_rules import Entry
from splitmeans.privacy.limits import Limit
from splitmeans.privacy.series_ledger import SeriesLedger
from splitmeans.run.journal import Journal
from splitmeans.run.own_keys import revocation_of
from splitmeans.wire.identity import PublicIdentity

# Names of the figures, and towards whom they are.
TOWARDS = {
    "epsilon": "server, outsiders",
    "party_epsilon": "a party",
    "coalition_epsilon": "a party with the server",
}

_EPSILON = typer.Option(..., "--epsilon", help="What all runs on it may cost together.")
_DELTA = typer.Option(..., "--delta", help="The same for delta.")
_PARTY_EPSILON = typer.Option(
    None,
    "--party-epsilon",
    help="What they may cost together towards a fellow party; default: no limit.",
)
_COALITION_EPSILON = typer.Option(
    None, "--coalition-epsilon", help="The same towards a party together with the server."
)
REQUEST = typer.Option(
    False, "--request", help="Ask for it as a guard, where the home has four eyes."
)
GUARD = typer.Option(None, "--as", help="Your name among the guards; your key is that of --key.")


def limit(
    source: str = typer.Argument(help="Name of the data set, as `ledger source add` declared it."),
    epsilon: float = _EPSILON,
    delta: float = _DELTA,
    party_epsilon: float | None = _PARTY_EPSILON,
    coalition_epsilon: float | None = _COALITION_EPSILON,
    request: bool = REQUEST,
    guard_name: str | None = GUARD,
    home: Path = HOME_OPTION,
    key: Path | None = KEY_OPTION,
    passphrase_file: Path | None = FILE_OPTION,
    passphrase_fd: int | None = FD_OPTION,
) -> None:
    """Limit what all runs on a data set may cost a user together.

    A new limit takes the place of the whole old one. Where the home has four eyes a higher one
    needs two people.

    Example: splitmeans ledger limit customers --epsilon 3 --delta 1e-5 --home bank
    """
    chosen = _chosen_limit(epsilon, delta, party_epsilon, coalition_epsilon)
    signer = guard(guard_name, request, home, key, file=passphrase_file, fd=passphrase_fd)
    with writing(home) as ledger:
        is_new = source not in ledger.sources()
        entry = ledger.act("limit", source=source, limit=chosen, signer=signer, is_request=request)
        spent = ledger.spent(source)
    if _told_request(entry):
        return
    given = {"party_epsilon": party_epsilon, "coalition_epsilon": coalition_epsilon}
    further = {TOWARDS[name]: most for name, most in given.items() if most is not None}
    most_words = "".join(f", towards {who} {most:g}" for who, most in further.items())
    spent_words = "".join(
        f", towards {TOWARDS[name]} {shown_amount(getattr(spent, name))}"
        for name, most in given.items()
        if most is not None
    )
    err.print(
        f"limit of {source}: epsilon {epsilon:g}, delta {delta:g}{most_words}; "
        f"spent so far: epsilon {spent.epsilon:g}, delta {spent.delta:g}{spent_words}",
        markup=False,
        soft_wrap=True,
    )
    if is_new:
        err.print(
            f"note: nothing has this name yet; it holds for runs with --source {source}",
            markup=False,
            soft_wrap=True,
        )


def default(
    epsilon: float = _EPSILON,
    delta: float = _DELTA,
    party_epsilon: float | None = _PARTY_EPSILON,
    coalition_epsilon: float | None = _COALITION_EPSILON,
    request: bool = REQUEST,
    guard_name: str | None = GUARD,
    home: Path = HOME_OPTION,
    key: Path | None = KEY_OPTION,
    passphrase_file: Path | None = FILE_OPTION,
    passphrase_fd: int | None = FD_OPTION,
) -> None:
    """Limit every data set of this home that has no limit of its own.

    Example: splitmeans ledger default --epsilon 3 --delta 1e-5 --home bank
    """
    chosen = _chosen_limit(epsilon, delta, party_epsilon, coalition_epsilon)
    signer = guard(guard_name, request, home, key, file=passphrase_file, fd=passphrase_fd)
    with writing(home) as ledger:
        entry = ledger.act("default", limit=chosen, signer=signer, is_request=request)
    if not _told_request(entry):
        print_text(
            err,
            f"limit of every data set without one of its own: epsilon {epsilon:g}, delta "
            f"{delta:g}. From now on a new name must be declared: splitmeans ledger source add",
        )


def guard_add(
    name: str = typer.Argument(help="Name of the person."),
    public_key: Path = typer.Argument(help="File with the person's public key (`keys show`)."),
    request: bool = REQUEST,
    guard_name: str | None = GUARD,
    home: Path = HOME_OPTION,
    key: Path | None = KEY_OPTION,
    passphrase_file: Path | None = FILE_OPTION,
    passphrase_fd: int | None = FD_OPTION,
) -> None:
    """Pin the key of a person who may ask for higher limits, or approve them.

    Example: splitmeans ledger guard alice alice.pub --home bank
    """
    try:
        text = public_key.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        raise ParameterError(f"{public_key}: no public key can be read") from None
    public = PublicIdentity.from_text(text)
    signer = guard(guard_name, request, home, key, file=passphrase_file, fd=passphrase_fd)
    with writing(home) as ledger:
        entry = ledger.act(
            "guard", party=name, what=public.to_text(), signer=signer, is_request=request
        )
    if not _told_request(entry):
        print_text(err, f"guard {name}: {public.fingerprint}; compare the digits with {name}")


def four_eyes(
    state: str = typer.Argument(help="on or off"),
    request: bool = REQUEST,
    guard_name: str | None = GUARD,
    home: Path = HOME_OPTION,
    key: Path | None = KEY_OPTION,
    passphrase_file: Path | None = FILE_OPTION,
    passphrase_fd: int | None = FD_OPTION,
) -> None:
    """Say that this home needs two people for whatever loosens a limit.

    Example: splitmeans ledger four-eyes on --home bank
    """
    signer = guard(guard_name, request, home, key, file=passphrase_file, fd=passphrase_fd)
    with writing(home) as ledger:
        entry = ledger.act("four-eyes", what=state, signer=signer, is_request=request)
    if not _told_request(entry):
        print_text(err, f"four eyes: {state}")


def approve(
    number: int = typer.Argument(help="Number of the request, as `ledger show` has it."),
    guard_name: str = typer.Option(..., "--as", help="Your name among the guards."),
    home: Path = HOME_OPTION,
    key: Path | None = KEY_OPTION,
    passphrase_file: Path | None = FILE_OPTION,
    passphrase_fd: int | None = FD_OPTION,
) -> None:
    """Approve what another guard has requested; it holds from then on.

    Example: splitmeans ledger approve 7 --as bob --key bob.json --home bank
    """
    signer = guard(guard_name, True, home, key, file=passphrase_file, fd=passphrase_fd)
    assert signer is not None
    with writing(home) as ledger:
        entry = ledger.approve(number, signer)
    print_text(err, f"entry {entry.number}: {words_of(entry)}, requested by entry {number}")


guard_add.__name__ = "guard"
COMMANDS = (limit, default, guard_add, four_eyes, approve)


def guard(
    name: str | None,
    is_request: bool,
    home: Path,
    key: Path | None,
    *,
    file: Path | None,
    fd: int | None,
) -> Signer | None:
    """Return the guard who signs, None if nobody does."""
    if name is None:
        if is_request:
            raise ParameterError("--request needs --as, your name among the guards")
        return None
    if not is_request:
        raise ParameterError("--as is for --request and for `ledger approve`")
    identity = load_identity(home, key, file=file, fd=fd)
    if (said := revocation_of(home.expanduser(), identity.public)) is not None:
        raise ParameterError(f"the key of {name!r} was revoked: {said.reason}")
    return Signer(name=name, identity=identity)


@contextmanager
def writing(home: Path) -> Iterator[SeriesLedger]:
    """Write to the ledger, in one transaction."""
    with Journal.open(home.expanduser()) as journal, journal.transaction():
        yield SeriesLedger(journal.connection)


def shown_amount(epsilon: float) -> str:
    """Return a sum as people read it."""
    return "no bound" if math.isinf(epsilon) else f"{epsilon:.4g}"


def _chosen_limit(
    epsilon: float, delta: float, party_epsilon: float | None, coalition_epsilon: float | None
) -> Limit:
    given: dict[str, Any] = {
        "party_epsilon": party_epsilon,
        "coalition_epsilon": coalition_epsilon,
    }
    further = {name: None if most is None else float(most) for name, most in given.items()}
    return Limit(epsilon=float(epsilon), delta=float(delta), **further)


def _told_request(entry: Entry) -> bool:
    if entry.kind != "request":
        return False
    print_text(
        err,
        f"request {entry.number}: {words_of(entry)}. Nothing has changed yet; another guard "
        f"approves it: splitmeans ledger approve {entry.number} --as NAME --key FILE",
    )
    return True
