"""`splitmeans archive`: file a run away as one signed bundle, and verify such a bundle."""

import contextlib
import json as json_format
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import typer
from rich.progress import Progress, SpinnerColumn, TextColumn
from typer.core import TyperGroup

from splitmeans.cli.console import Quiet, check_file, err, print_text
from splitmeans.cli.home import HOME_OPTION, KEY_OPTION, load_identity
from splitmeans.cli.passphrase import FD_OPTION, FILE_OPTION
from splitmeans.cli.result_options import RESULT
from splitmeans.errors import EvidenceError, ParameterError
from splitmeans.evidence.bundle import MOST_BYTES
from splitmeans.evidence.verify import Pins, Verified, verify_bundle
from splitmeans.result.result import Result
from splitmeans.run.home import DATABASE
from splitmeans.run.journal import Journal
from splitmeans.run.own_keys import revocation_of
from splitmeans.study import Study
from splitmeans.wire.identity import PublicIdentity, spoken
from splitmeans.wire.key_change import Revocation, read_revocation
from splitmeans.wire.slot import SERVER


class _MakeByDefault(TyperGroup):
    """`archive RESULT` is `archive make RESULT`; a folder that is called "verify" is ./verify."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] not in self.commands:
            args = ["make", *args]
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=_MakeByDefault,
    no_args_is_help=True,
    add_completion=False,
    help="File a run away as one signed bundle, and verify such a bundle.",
)


@app.command()
def make(
    result: Path = RESULT,
    output: Path = typer.Option(..., "--output", "-o", help="The zip file to write."),
    home: Path = HOME_OPTION,
    key: Path | None = KEY_OPTION,
    passphrase_file: Path | None = FILE_OPTION,
    passphrase_fd: int | None = FD_OPTION,
    quiet: Quiet = False,
) -> None:
    """File a run away: record in plain words, result, report, ledger lines, transcript; signed.

    By one who took part, with the home of the run: the bundle is signed with that key. Equal
    results and ledgers give equal bytes. No row, id, private key or label is in it.

    Example: splitmeans archive result -o run.zip --home bank
    """
    from splitmeans.evidence.make import make_bundle

    check_file(output)
    if output.exists():
        raise ParameterError(f"{output}: there is such a file, and no archive replaces another")
    read = Result.read(result)
    # The key that the study has, which may be one from before a renewal.
    identity = load_identity(
        home,
        key,
        file=passphrase_file,
        fd=passphrase_fd,
        study=read.study,
        participant=read.facts["participant"],
    )
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=err, transient=True) as progress:
        task = progress.add_task("reading the ledger", total=None)
        data = make_bundle(
            read,
            home.expanduser(),
            identity,
            progress=lambda step: progress.update(task, description=step),
        )
    try:
        with output.open("xb") as file:
            file.write(data)
    except OSError as problem:
        raise ParameterError(f"{output}: cannot be written ({problem.strerror})") from problem
    print_text(
        err,
        "signed; keep it with the study file that you agreed on, by which anyone verifies it: "
        f"splitmeans archive verify {output.name} --study study.toml",
    )
    typer.echo(output)


@app.command()
def verify(
    bundle: Path = typer.Argument(help="The zip file."),
    study: Path | None = typer.Option(
        None, "--study", help="The study file that you know: its keys must be those of the bundle."
    ),
    key: str | None = typer.Option(
        None, "--key", help="Public key of who made the bundle, or a file with it."
    ),
    home: Path | None = typer.Option(
        None, "--home", help="A home in which the study is approved; in place of --study."
    ),
    revoked: list[Path] = typer.Option(
        [], "--revoked", help="What `keys revoke` printed; a home's own list is looked at too."
    ),
    json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Check a bundle: signatures, hashes, ledger against transcript; epsilon is computed anew.

    Works on any machine, without the participants' homes. Exit code 1 if anything does not fit.
    Without --study, --key or --home it is checked against the keys in the bundle itself: then
    compare the digits that are printed with those of the study you know.

    Example: splitmeans archive verify run.zip --study study.toml
    """
    pins = _pins(study, key, home)
    found = verify_bundle(_read(bundle), pins)
    if home is not None:
        _check_approved(found, home.expanduser())
    own = None if home is None else home.expanduser()
    marks = marks_of(found, known_revocations(found, revoked, own))
    is_pinned = not pins.is_nothing or home is not None
    if json:
        facts = _mapping(found, is_pinned=is_pinned) | ({"caution": list(marks)} if marks else {})
        typer.echo(json_format.dumps(facts, indent=1))
        return
    manifest = found.manifest
    typer.echo(
        f"archive of run {manifest.run} of study {manifest.study!r}, by {manifest.participant}, "
        f"published {manifest.published_at}"
    )
    for check in found.checks:
        typer.echo(f"  {check}")
    for mark in marks:
        typer.echo(mark)
    if is_pinned:
        typer.echo("verified")
    else:
        typer.echo(
            "verified in itself. Whose keys these are was NOT checked: anybody can make keys. "
            f"Compare the digits of the study, {spoken(found.study.hash)}, or give --study or --key"
        )


def _pins(study: Path | None, key: str | None, home: Path | None) -> Pins:
    if study is not None and home is not None:
        raise ParameterError("give --study or --home, not both")
    study_hash = None if study is None else Study.read(study).hash
    if key is None:
        return Pins(study_hash=study_hash)
    with contextlib.suppress(ValueError):
        return Pins(study_hash=study_hash, key=PublicIdentity.from_text(key.strip()).to_text())
    try:
        text = Path(key).read_text(encoding="utf-8")
        return Pins(study_hash=study_hash, key=PublicIdentity.from_text(text.strip()).to_text())
    except (OSError, ValueError):
        raise ParameterError(
            "--key must be a public key as `splitmeans keys show` prints it, or a file with one, "
            f"got {key[:60]!r}"
        ) from None


def _check_approved(found: Verified, home: Path) -> None:
    if not (home / DATABASE).is_file():
        raise ParameterError(f"{home} has no journal of runs; --home names the folder of your runs")
    with Journal.open(home) as journal:
        if not journal.approved(found.study.hash):
            raise EvidenceError(f"the study of the bundle was never approved in the home {home}")


def _read(bundle: Path) -> bytes:
    try:
        if bundle.stat().st_size > MOST_BYTES:
            raise EvidenceError(f"{bundle}: no bundle has more than {MOST_BYTES} bytes")
        return bundle.read_bytes()
    except OSError as problem:
        raise ParameterError(f"{bundle}: cannot be read ({problem.strerror})") from problem


def _mapping(found: Verified, *, is_pinned: bool) -> dict[str, Any]:
    manifest = found.manifest
    return {
        "verified": True,
        "pinned": is_pinned,
        "study": manifest.study,
        "study_hash": manifest.study_hash,
        "run": manifest.run,
        "participant": manifest.participant,
        "key": manifest.key,
        "published_at": manifest.published_at,
        "result_hash": manifest.result_hash,
        "splitmeans": manifest.splitmeans,
        "epsilon": found.epsilon,
        "epsilon_at_least": found.lower,
        "delta": found.delta,
        "budget_epsilon": found.study.budget.epsilon,
        "checks": list(found.checks),
    }


def signers_of(found: Verified) -> dict[str, PublicIdentity]:
    """Return the keys that an archive stands on: of who published, and of who archived."""
    names = dict.fromkeys((SERVER, found.manifest.participant))
    return {name: PublicIdentity.from_text(found.study.public_keys[name]) for name in names}


def known_revocations(
    found: Verified, files: list[Path], home: Path | None
) -> dict[str, Revocation]:
    """Return what is known of the signers' keys, by name: from files, and from a home."""
    given: dict[str, Revocation] = {}
    for file in files:
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, ValueError) as problem:
            raise ParameterError(f"--revoked {file} cannot be read: {problem}") from None
        said = read_revocation(text, where=str(file))
        given[said.digest] = said
    known: dict[str, Revocation] = {}
    for name, key in signers_of(found).items():
        said_at_home = None if home is None else revocation_of(home, key)
        revocation = given.get(key.digest.hex(), said_at_home)
        if revocation is not None:
            known[name] = revocation
    return known


def marks_of(found: Verified, revocations: Mapping[str, Revocation]) -> tuple[str, ...]:
    """Return what to say loudly about keys that were revoked after the result was published.

    Raises:
        EvidenceError: A key was revoked before the date of the result.
    """
    marks = []
    published = found.manifest.published_at
    for name, said in revocations.items():
        why = f"the key of {name!r} was revoked on {said.time[:10]} ({said.reason})"
        if _moment(said.time) <= _moment(published):
            raise EvidenceError(
                f"{why}, before this result was published ({published[:10]}): whoever has the key "
                "now may have made it, and nothing that it signed since counts"
            )
        marks.append(
            f"CAUTION: {why}, after the date of this result. Whoever has the key now can date a "
            "result back: believe it only if you had it before that day"
        )
    return tuple(marks)


def _moment(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise EvidenceError(f"{text!r} is no date and time") from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
