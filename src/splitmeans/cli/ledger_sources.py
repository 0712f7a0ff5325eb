"""`splitmeans ledger source`: declared data sets, and homes that know each other's people."""

import json
from pathlib import Path

import typer

from splitmeans.cli.console import err, print_text
from splitmeans.cli.home import HOME_OPTION, KEY_OPTION
from splitmeans.cli.ledger_limits import GUARD, REQUEST, guard, writing
from splitmeans.cli.ledger_rules import rules_mapping
from splitmeans.cli.passphrase import FD_OPTION, FILE_OPTION
from splitmeans.privacy.four_eyes import words_of
from splitmeans.run.journal import Journal
from splitmeans.run.people_register import Register

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Declare whose data is charged.")


@app.command("add")
def add_source(
    name: str = typer.Argument(help="What the ledger calls the data set."),
    people: str = typer.Option(..., "--people", help="Whose data it is, in words."),
    also: list[str] = typer.Option(
        [], "--also", help="A name from before that stands for the same people; may be repeated."
    ),
    home: Path = HOME_OPTION,
) -> None:
    """Declare a data set: the people whose costs are added up, wherever their rows are.

    With --also it takes over what was charged under other names, or an existing data set does.

    Example: splitmeans ledger source add customers --people "retail customers" --home bank
    """
    with writing(home) as ledger:
        declared = ledger.book().data_sets.people
        if not also or name not in declared:
            ledger.act("source", source=name, what=people)
        for part in also:
            ledger.act("same", source=part, what=name)
        spent = ledger.spent(name)
    names = "" if not also else f", also called {', '.join(also)}"
    print_text(
        err,
        f"data set {name}: {people}{names}; spent so far: epsilon {spent.epsilon:g}, delta "
        f"{spent.delta:g}",
    )


@app.command("list")
def list_sources(
    home: Path = HOME_OPTION,
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """List the declared data sets, with the names that are part of each.

    Example: splitmeans ledger source list --home bank
    """
    with writing(home) as ledger:
        book = ledger.book()
    if as_json:
        typer.echo(json.dumps(rules_mapping(book), indent=1))
        return
    for name, people in sorted(book.data_sets.people.items()):
        parts = [part for part, whole in book.data_sets.owners.items() if whole == name]
        typer.echo(f"{name}: {people}" + (f" (also {', '.join(parts)})" if parts else ""))
    if not book.data_sets.people:
        print_text(err, "no data set is declared: splitmeans ledger source add NAME --people WHO")


@app.command("apart")
def say_apart(
    name: str = typer.Argument(help="The data set that a run was refused for."),
    other: str = typer.Argument(help="The one whose people it seems to have."),
    reason: str = typer.Option(..., "--reason", help="Why both may be spent; for auditors."),
    request: bool = REQUEST,
    guard_name: str | None = GUARD,
    home: Path = HOME_OPTION,
    key: Path | None = KEY_OPTION,
    passphrase_file: Path | None = FILE_OPTION,
    passphrase_fd: int | None = FD_OPTION,
) -> None:
    """Say that two data sets may be spent side by side, although many people are in both.

    Whoever is in both then has both costs. Where the home has four eyes it needs two people.

    Example: splitmeans ledger source apart suppliers customers --reason "shared test ids only"
    """
    signer = guard(guard_name, request, home, key, file=passphrase_file, fd=passphrase_fd)
    with writing(home) as ledger:
        entry = ledger.act(
            "apart", source=name, what=other, note=reason, signer=signer, is_request=request
        )
    waits = "; another guard must approve it" if request else ""
    print_text(err, f"entry {entry.number}: {words_of(entry)}{waits}")


def register(
    folder: Path = typer.Argument(help="Folder that all homes of your organisation can write."),
    name: str = typer.Option(..., "--name", help="What the other homes call this one."),
    home: Path = HOME_OPTION,
) -> None:
    """Let the homes of one organisation recognise each other's people.

    Each of them joins the same folder. It has a secret and keyed records, no id; keep it from other
    organisations.

    Example: splitmeans ledger register /srv/people --name marketing --home bank
    """
    own = home.expanduser()
    with Journal.open(own):
        Register(folder=folder.expanduser(), home_name=name).join(own)
    print_text(err, f"joined the register of people in {folder} as {name!r}")
