"""`splitmeans keys`: make, show, renew and revoke a participant's identity."""

import re
from dataclasses import replace
from pathlib import Path

import typer

from splitmeans.cli.console import check_file, err, print_text
from splitmeans.cli.home import (
    HOME_OPTION,
    KEY_FILE,
    KEY_OPTION,
    key_file,
    load_identity,
)
from splitmeans.cli.passphrase import FD_OPTION, FILE_OPTION, given_passphrase, new_passphrase
from splitmeans.errors import ParameterError
from splitmeans.run import own_keys
from splitmeans.study import Study
from splitmeans.wire.identity import Identity, PublicIdentity, spoken
from splitmeans.wire.key_change import (
    KeyRenewal,
    check_reason,
    read_revocation,
    revocation_text,
)
from splitmeans.wire.slot import SERVER

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="Make, show, renew and revoke your identity."
)


@app.command()
def new(
    home: Path = HOME_OPTION,
    key: Path | None = KEY_OPTION,
    passphrase: bool = typer.Option(
        False, "--passphrase", help="Protect the file with a passphrase; asks for it."
    ),
    passphrase_file: Path | None = FILE_OPTION,
    passphrase_fd: int | None = FD_OPTION,
) -> None:
    """Make a key pair; prints the public key that goes into the study.

    Example: splitmeans keys new --home bank > bank.pub
    """
    path = key or home.expanduser() / KEY_FILE
    if path.exists():
        raise ParameterError(
            f"key file {path} exists and is never replaced; `splitmeans keys show` prints its "
            "public key; `--key FILE` makes another identity that shares the home and its ledger"
        )
    is_protected = passphrase or passphrase_file is not None or passphrase_fd is not None
    text = new_passphrase(file=passphrase_file, fd=passphrase_fd) if is_protected else None
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as problem:
        raise ParameterError(f"{path.parent}: cannot be made ({problem.strerror})") from problem
    identity = Identity.new()
    identity.save(path, passphrase=text)
    err.print(f"key file     {path}  (keep it to yourself)", markup=False, soft_wrap=True)
    err.print(f"fingerprint  {identity.public.fingerprint}", markup=False, soft_wrap=True)
    typer.echo(identity.public.to_text())


@app.command()
def show(
    home: Path = HOME_OPTION,
    key: Path | None = KEY_OPTION,
) -> None:
    """Print your public key; the fingerprint, for the phone, goes to stderr. Asks no passphrase.

    Example: splitmeans keys show --home bank
    """
    public = Identity.load_public(key_file(home, key))
    err.print(f"fingerprint  {public.fingerprint}", markup=False, soft_wrap=True)
    typer.echo(public.to_text())


@app.command()
def renew(
    home: Path = HOME_OPTION,
    key: Path | None = KEY_OPTION,
    passphrase_file: Path | None = FILE_OPTION,
    passphrase_fd: int | None = FD_OPTION,
) -> None:
    """Make a new key that the old one signs; prints the renewal that goes to the others.

    Runs that have begun end with the old key, which stays in the folder `keys`.

    Example: splitmeans keys renew --home bank > bank.renewal
    """
    path = key_file(home, key)
    word = given_passphrase(path, file=passphrase_file, fd=passphrase_fd)
    renewal = own_keys.renew(path, word)
    print_text(err, f"old fingerprint  {renewal.old.fingerprint}")
    print_text(err, f"new fingerprint  {renewal.new.fingerprint}")
    typer.echo(renewal.to_text(), nl=False)


@app.command()
def revoke(
    reason: str = typer.Option(..., "--reason", help="Why; the others see it."),
    home: Path = HOME_OPTION,
    key: Path | None = KEY_OPTION,
    passphrase_file: Path | None = FILE_OPTION,
    passphrase_fd: int | None = FD_OPTION,
) -> None:
    """Sign that your key must not be used any more; prints what goes to the others.

    This home refuses the key from then on, in runs that have begun as well.

    Example: splitmeans keys revoke --reason "laptop stolen" --home bank > bank.revoked
    """
    identity = load_identity(home, key, file=passphrase_file, fd=passphrase_fd)
    text = revocation_text(identity, reason=reason, time=own_keys.now())
    said = read_revocation(text, where="the revocation")
    own_keys.refuse_key(home.expanduser(), said, text)
    print_text(err, f"revoked  {identity.public.fingerprint}")
    typer.echo(text, nl=False)


@app.command()
def refuse(
    file: Path | None = typer.Argument(None, help="What `keys revoke` printed."),
    fingerprint: str | None = typer.Option(
        None, "--fingerprint", help="Without a file: the 40 digits of the key."
    ),
    reason: str | None = typer.Option(None, "--reason", help="Without a file: why."),
    study: Path | None = typer.Option(
        None, "--study", help="Without a file: a study that has the key."
    ),
    home: Path = HOME_OPTION,
) -> None:
    """Refuse a key from now on, of anyone: its owner revoked it, or told you that it was stolen.

    Examples: splitmeans keys refuse bank.revoked --home shop

    splitmeans keys refuse --fingerprint "12345 ..." --study study.toml --reason "stolen"
    """
    own = home.expanduser()
    if not own.is_dir():
        raise ParameterError(f"{own}: there is no such home folder")
    if file is not None:
        text = _text_of(file)
        said = read_revocation(text, where=str(file))
    else:
        if fingerprint is None or reason is None or study is None:
            raise ParameterError("give a file, or --fingerprint, --study and --reason")
        keys = [PublicIdentity.from_text(one) for one in Study.read(study).public_keys.values()]
        wanted = re.sub(r"\D", "", fingerprint)
        found = [one for one in keys if re.sub(r"\D", "", one.fingerprint) == wanted]
        if not found:
            raise ParameterError(f"{study} has no key with the fingerprint {fingerprint!r}")
        digest = found[0].digest.hex()
        said, text = own_keys.local_revocation(digest, reason=check_reason(reason))
    own_keys.refuse_key(own, said, text)
    print_text(err, f"refused from now on: {spoken(said.digest)} ({said.reason})")


def rekey(
    study: Path = typer.Argument(help="The study file that is approved."),
    renewals: list[Path] = typer.Argument(help="What `keys renew` printed, of one or several."),
    output: Path = typer.Option(..., "--output", "-o", help="File to write."),
    home: Path = HOME_OPTION,
) -> None:
    """Write the study with new keys, each signed by the one that it follows; all else stays.

    It is another study with another hash, which everyone approves; runs that have begun go on with
    the old one.

    Example: splitmeans study rekey study.toml bank.renewal -o study-2.toml
    """
    if output.exists():
        raise ParameterError(f"{output} exists; give another name with -o, or remove it")
    check_file(output)
    made = rekeyed(Study.read(study), renewals, home.expanduser())
    output.write_text(made.to_toml(), encoding="utf-8")
    print_text(err, f"wrote {output}; all participants now compare these digits:")
    typer.echo(spoken(made.hash))
    if (words := new_series_words(made)) is not None:
        print_text(err, words)


def new_series_words(study: Study) -> str | None:
    """Return what a new key means for a series, which is of one study; None for one run."""
    if study.renewal is None:
        return None
    return (
        "note: the runs of a series are of one study, so runs of this one are another series, with "
        "its whole budget charged again. To go on with the old series keep the old study, and the "
        "old key in keys/, until its last run"
    )


def rekeyed(study: Study, files: list[Path], home: Path) -> Study:
    """Return a study with the keys of some renewals, in the order in which they were given.

    Raises:
        ParameterError: A renewal is about no key of the study, or of one that was revoked.
    """
    for file in files:
        renewal = KeyRenewal.from_text(_text_of(file), where=str(file))
        if (said := own_keys.revocation_of(home, renewal.old)) is not None:
            raise ParameterError(
                f"{file}: the old key was revoked ({said.reason}), so it cannot vouch for another; "
                "compare the new key by telephone and agree on a new study"
            )
        text = renewal.old.to_text()
        whose = [name for name, pinned in study.public_keys.items() if pinned == text]
        if not whose:
            raise ParameterError(
                f"{file} renews the key {renewal.old.fingerprint}, which nobody has in study "
                f"{study.name!r}"
            )
        study = _with_key(study, whose[0], renewal.new.to_text())
        print_text(err, f"{whose[0]}: {renewal.new.fingerprint}, signed by the key before")
    return study


def _with_key(study: Study, name: str, text: str) -> Study:
    if name == SERVER:
        return replace(study, server_key=text)
    parties = tuple(
        replace(party, public_key=text) if party.name == name else party for party in study.parties
    )
    return replace(study, parties=parties)


def _text_of(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "not a text file"
        raise ParameterError(f"{file}: cannot be read ({reason})") from None
