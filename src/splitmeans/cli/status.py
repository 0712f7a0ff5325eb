"""`splitmeans status`: who is missing in which study and run, since when."""

import contextlib
import json as json_format
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from splitmeans.cli.console import new_table, print_table, print_text
from splitmeans.cli.console import out as stdout
from splitmeans.cli.home import HOME_OPTION, KEY_OPTION, load_identity
from splitmeans.cli.passphrase import FD_OPTION, FILE_OPTION
from splitmeans.cli.run_options import CA, KNOWN_HOSTS, SSH_KEY, USE_PROXY, open_chosen
from splitmeans.errors import FINAL, WAITED, ParameterError
from splitmeans.mailbox.open import RELAYS, open_mailbox, scheme_of
from splitmeans.run.drive import FAILED
from splitmeans.run.home import DATABASE
from splitmeans.run.journal import Journal
from splitmeans.run.records import KnownRun, known_runs
from splitmeans.run.status import (
    WAITING,
    RunStatus,
    Watcher,
    status_by_mailbox,
    status_of_known,
)
from splitmeans.study import Study

app = typer.Typer(add_completion=False)


@app.command()
def status(
    study: list[Path] = typer.Argument(None, help="Study files; all studies of the home if none."),
    home: Path = HOME_OPTION,
    mailbox: str | None = typer.Option(
        None, "--mailbox", help="Also look there: whose turn it is, and what waits to be taken."
    ),
    run: str | None = typer.Option(None, "--run", help="Only this run."),
    every: bool = typer.Option(False, "--all", help="Also runs that are over."),
    json: bool = typer.Option(False, "--json", help="Print JSON."),
    key: Path | None = KEY_OPTION,
    passphrase_file: Path | None = FILE_OPTION,
    passphrase_fd: int | None = FD_OPTION,
    ca: Path | None = CA,
    use_proxy: bool = USE_PROXY,
    ssh_key: Path | None = SSH_KEY,
    known_hosts: Path | None = KNOWN_HOSTS,
) -> None:
    """Show who is missing in which study and run, at which stage, since when.

    From your home: which messages were taken. With --mailbox: whose turn it is. A study file and a
    mailbox of files are enough without a home. Nothing is opened, taken or changed.

    Exit codes: 0 nobody is missing, 3 somebody is, 1 the last run of a study has failed, 4 the
    mailbox cannot be reached.

    Example: splitmeans status --home bank --mailbox shared
    """
    given = {one.hash: one for one in map(Study.read, study or [])}
    own = home.expanduser()
    runs, texts = _from_home(own)
    if not runs and not (given and mailbox):
        raise ParameterError(
            f"{own} has no runs; name the folder of your runs with --home, or give a study file "
            "and --mailbox"
        )
    studies = {study_hash: Study.from_toml(text) for study_hash, text in texts.items()} | given
    if given:
        runs = tuple(known for known in runs if known.key.study_hash in given)
    if run is not None:
        runs = tuple(known for known in runs if known.key.run == run)
    found: list[RunStatus] = []
    for known in runs:
        agreed = studies.get(known.key.study_hash)
        is_over = known.outcome is not None
        options: dict[str, Any] = {"ca": ca, "use_proxy": use_proxy, "ssh_key": ssh_key}
        options |= {"known_hosts": known_hosts}
        chosen = None if is_over or agreed is None else mailbox
        with _watching(chosen, known, own=own, key=key, file=passphrase_file, fd=passphrase_fd,
                       **options) as watcher:  # fmt: skip
            found.append(status_of_known(known, agreed, watcher))
    begun = {(known.key.study_hash, known.key.run) for known in runs}
    if mailbox is not None:
        for agreed in given.values():
            name = run or "1"
            if not any(study_hash == agreed.hash for study_hash, _ in begun):
                with contextlib.closing(open_mailbox(mailbox)) as box:
                    watcher = Watcher(url=mailbox, mailbox=box)
                    found.append(status_by_mailbox(agreed, name, watcher))
    _print(found, every=every, json=json)
    raise typer.Exit(_code(found))


def _from_home(home: Path) -> tuple[tuple[KnownRun, ...], dict[str, str]]:
    if not (home / DATABASE).is_file():
        return (), {}
    with Journal.open(home) as journal:
        runs = known_runs(journal.connection)
        texts = journal.approved_texts()
    # A server approves nothing; its runs keep the study's text themselves.
    own = [known for known in runs if "toml" in known.details]
    kept = {known.key.study_hash: known.details["toml"] for known in own}
    return runs, kept | texts


@contextlib.contextmanager
def _watching(
    mailbox: str | None,
    known: KnownRun,
    *,
    own: Path,
    key: Path | None,
    file: Path | None,
    fd: int | None,
    **options: Any,
) -> Iterator[Watcher | None]:
    """Open the mailbox as the participant of a run; a relay asks for the participant's key."""
    if mailbox is None:
        yield None
        return
    if scheme_of(mailbox) in RELAYS:
        identity = load_identity(own, key, file=file, fd=fd)
        box = open_chosen(mailbox, participant=known.key.participant, identity=identity, **options)
    else:
        box = open_mailbox(mailbox)
    with contextlib.closing(box):
        yield Watcher(url=mailbox, mailbox=box)


def _code(found: list[RunStatus]) -> int:
    """Waiting counts before an old failure: it is what one can do something about."""
    if any(one.state == WAITING for one in found):
        return WAITED
    last = {one.study_hash: one.state for one in found}
    return FINAL if FAILED in last.values() else 0


def _print(found: list[RunStatus], *, every: bool, json: bool) -> None:
    last = {one.study_hash: one for one in found}
    shown = [
        one
        for one in found
        if every
        or (one.state != "finished" and (one.state != FAILED or last[one.study_hash] is one))
    ]
    if json:
        typer.echo(json_format.dumps([_mapping(one) for one in shown], indent=1))
        return
    if not shown:
        print_text(stdout, "no run is waiting for anybody; --all shows runs that are over")
        return
    table = new_table()
    for heading in ("study", "run", "as", "state", "stage", "missing", "last news"):
        table.add_column(heading, overflow="fold")
    for one in shown:
        missing = "; ".join(
            f"{who}: {', '.join(sorted({m.kind for m in one.missing if m.sender == who}))}"
            for who in one.who
        )
        since = one.since or "not known"
        asked = one.participant or "(mailbox)"
        row = (one.study, one.run, asked, one.state, one.stage, missing or one.note, since)
        table.add_row(*row)
    print_table(table)


def _mapping(one: RunStatus) -> dict[str, Any]:
    return {
        "study": one.study,
        "study_hash": one.study_hash,
        "run": one.run,
        "participant": one.participant,
        "state": one.state,
        "stage": one.stage,
        "missing": [message._asdict() for message in one.missing],
        "since": one.since,
        "note": one.note,
    }
