"""`splitmeans relay`: the mailbox over HTTPS, and the studies that it serves."""

import json as json_format
import re
from datetime import UTC, datetime
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from splitmeans.cli.console import Quiet, err, new_table, print_table, print_text
from splitmeans.cli.json_log import LOG_FORMAT, LogFormat
from splitmeans.errors import ParameterError
from splitmeans.relay.limits import ConnectionLimits, RelayLimits
from splitmeans.relay.purge import purge
from splitmeans.relay.study_files import FOLDER, add_study, read_studies
from splitmeans.study import Study

if TYPE_CHECKING:
    from splitmeans.relay.metrics import Metrics

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Pass messages between participants over HTTPS.",
)

_LIMITS = RelayLimits()
_CONNECTIONS = ConnectionLimits()
_LOG_LINES = 60


@app.command()
def serve(
    folder: Path = typer.Option(..., "--folder", help="Where messages are kept."),
    study: list[Path] = typer.Option(
        [], "--study", help="Study whose participants may use it; see also `relay study add`."
    ),
    studies: list[Path] = typer.Option(
        [], "--studies", help="Folder whose studies (*.toml) are served, also ones added later."
    ),
    host: str = typer.Option("127.0.0.1", "--host", help="Address to listen on."),
    port: int = typer.Option(8443, "--port", help="Port to listen on; 0 takes a free one."),
    tls_cert: Path | None = typer.Option(None, "--tls-cert", help="Certificate chain, PEM."),
    tls_key: Path | None = typer.Option(None, "--tls-key", help="Its private key, PEM."),
    max_message: str = typer.Option(
        "256M", "--max-message", help="Longest message that is taken: 300M, 1G, or bytes."
    ),
    max_study: str = typer.Option(
        "16G", "--max-study", help="What all messages of a study may take; an equal share each."
    ),
    max_runs: int = typer.Option(
        _LIMITS.sender_runs, "--max-runs", help="Runs of a study, for each participant."
    ),
    max_requests: int = typer.Option(
        _LIMITS.requests_per_minute, "--max-requests", help="Requests of a participant a minute."
    ),
    max_transfers: int = typer.Option(
        _LIMITS.transfers, "--max-transfers", help="Uploads and downloads at the same time."
    ),
    max_transfers_each: int = typer.Option(
        _LIMITS.transfers_per_participant, "--max-transfers-each", help="Those of one participant."
    ),
    max_connections: int = typer.Option(
        _CONNECTIONS.total, "--max-connections", help="Connections of participants at once."
    ),
    max_unsigned: int = typer.Option(
        _CONNECTIONS.unsigned,
        "--max-unsigned",
        help="Connections without a signed request yet; the oldest is closed for one more.",
    ),
    max_unsigned_per_address: int = typer.Option(
        _CONNECTIONS.unsigned_per_address,
        "--max-unsigned-per-address",
        help="Those of one address; no limit for a --proxy.",
    ),
    unsigned_seconds: float = typer.Option(
        _CONNECTIONS.unsigned_seconds,
        "--unsigned-seconds",
        help="How long a connection may be open before a signed request.",
    ),
    clock_seconds: int = typer.Option(
        _LIMITS.clock_seconds, "--clock-seconds", help="How far participants' clocks may be off."
    ),
    idle_seconds: float = typer.Option(
        _LIMITS.idle_seconds, "--idle-seconds", help="How long an upload may stand still."
    ),
    min_upload_rate: int = typer.Option(
        _LIMITS.upload_rate,
        "--min-upload-rate",
        help="Bytes a second of an upload that takes longer than --idle-seconds.",
    ),
    transfer_seconds: float = typer.Option(
        _LIMITS.transfer_seconds, "--transfer-seconds", help="How long a transfer may take."
    ),
    log_lines: int = typer.Option(
        _LOG_LINES, "--log-lines", help="Lines of each kind in the log a minute; the rest counted."
    ),
    log_format: LogFormat = LOG_FORMAT,
    proxy: list[str] = typer.Option(
        [],
        "--proxy",
        help="Address of a proxy whose X-Forwarded-For the log believes.",
    ),
    insecure: bool = typer.Option(
        False, "--insecure", help="Without TLS: tests, or a TLS proxy in front."
    ),
    quiet: Quiet = False,
) -> None:
    """Serve a mailbox over HTTPS; messages are sealed and signed, so it can open none.

    Example: splitmeans relay serve --study study.toml --folder messages --tls-cert cert.pem
    --tls-key key.pem
    """
    try:
        from splitmeans.relay import log
        from splitmeans.relay.app import make_app
        from splitmeans.relay.metrics import Metrics
        from splitmeans.relay.serve import serve as serve_app
        from splitmeans.relay.study_files import FOLDER, StudyWatch, roster_of
    except ImportError as problem:
        raise ParameterError(
            f'the relay needs {problem.name}; install it with: pip install "splitmeans[relay]"'
        ) from problem
    limits = RelayLimits(
        message_bytes=parse_size(max_message, option="--max-message"),
        study_bytes=parse_size(max_study, option="--max-study"),
        sender_runs=max_runs,
        requests_per_minute=max_requests,
        transfers=max_transfers,
        transfers_per_participant=max_transfers_each,
        clock_seconds=clock_seconds,
        idle_seconds=idle_seconds,
        upload_rate=min_upload_rate,
        transfer_seconds=transfer_seconds,
    )
    connections = ConnectionLimits(
        total=max_connections,
        unsigned=max_unsigned,
        unsigned_per_address=max_unsigned_per_address,
        unsigned_seconds=unsigned_seconds,
    )
    if log_lines < 1:
        raise ParameterError(f"--log-lines must be >= 1, got {log_lines}")
    for place in studies:
        if not place.is_dir():
            raise ParameterError(f"--studies {place}: there is no such folder")
    agreed = [Study.read(path) for path in study]
    as_json = log_format is LogFormat.JSON
    limit = log.set_up(json_lines=as_json, quiet=quiet, lines_per_minute=log_lines)
    watch = StudyWatch([folder / FOLDER, *studies], fixed={one.hash: one for one in agreed})
    for one in agreed:
        roster_of(one)
    rosters = watch.look() or {}
    metrics = Metrics()
    app = make_app(
        rosters, folder, limits, studies=watch, metrics=metrics, every_second=limit.flush
    )
    if not rosters:
        log.tell("no_study", "there is no study yet; `splitmeans relay study add` adds one")
    try:
        serve_app(
            app,
            host=host,
            port=port,
            cert=tls_cert,
            key=tls_key,
            insecure=insecure,
            connections=connections,
            proxies=proxy,
            on_ready=partial(_say_ready, as_json=as_json, metrics=metrics, cert=tls_cert),
        )
    finally:
        limit.flush(everything=True)


def _say_ready(url: str, *, as_json: bool, metrics: "Metrics", cert: Path | None) -> None:
    from splitmeans.mailbox.certificates import end_of
    from splitmeans.relay.log import tell

    metrics.certificate_ends = None if cert is None else int(end_of(cert).timestamp())
    if as_json:
        tell("ready", "relay at {url}", url=url)
    else:
        err.print(f"relay at {url}", markup=False, soft_wrap=True)


_UNITS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?)\s*([KMGT]?)(?:I?B)?", re.IGNORECASE)


def parse_size(text: str, *, option: str) -> int:
    """Return a number of bytes; units are powers of 1024."""
    found = _SIZE.fullmatch(text.strip())
    size = 0 if found is None else int(Fraction(found[1]) * 1024 ** _UNITS[found[2].upper()])
    if size < 1:
        raise ParameterError(
            f"{option} must be a size such as 300M, 1.5G or a number of bytes, got {text!r}"
        )
    return size


_of_studies = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Studies that a relay serves: add, list, purge them while it runs.",
)
app.add_typer(_of_studies, name="study")

_FOLDER = typer.Option(..., "--folder", help="The folder that `relay serve --folder` names.")
_DIGITS = re.compile(r"[0-9a-f]{12,64}")


@_of_studies.command()
def add(
    study: Path = typer.Argument(help="The study file."),
    folder: Path = _FOLDER,
) -> None:
    """Have the relay serve a study from now on; a relay that runs takes it up within seconds.

    Example: splitmeans relay study add study.toml --folder messages
    """
    agreed = Study.read(study)
    is_new = add_study(folder.expanduser(), agreed)
    words = "added" if is_new else "was added before"
    print_text(err, f"study {agreed.name!r} {words}; its participants may use the relay")
    typer.echo(agreed.hash[:32])


@_of_studies.command("list")
def list_studies(
    folder: Path = _FOLDER,
    studies: list[Path] = typer.Option(
        [], "--studies", help="Folder that `relay serve --studies` names."
    ),
    json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """List the studies of a relay's folder and the runs that have messages there.

    Studies that `relay serve --study` names are listed once they have messages.

    Example: splitmeans relay study list --folder messages
    """
    place = folder.expanduser()
    if not place.is_dir():
        raise ParameterError(f"{place}: there is no such folder")
    found, problems = read_studies([place / FOLDER, *studies])
    served = {study_hash[:32]: study for study_hash, study in found.items()}
    stored = {item.name for item in (place / "messages").glob("*") if item.is_dir()}
    rows = [_about(place, digits, served.get(digits)) for digits in sorted(served.keys() | stored)]
    for file, problem in problems.items():
        print_text(err, f"left out {file}: {problem}")
    if json:
        typer.echo(json_format.dumps(rows, indent=1))
        return
    table = new_table()
    for heading in ("study", "name", "participants", "runs", "last message"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(
            row["study"],
            row["name"] or "(named by --study, or served no more)",
            ", ".join(row["participants"]),
            ", ".join(row["runs"]),
            row["last_message"] or "",
        )
    print_table(table)


@_of_studies.command("purge")
def purge_study(
    study: str = typer.Argument(help="The study file, or 12 or more digits of the study's hash."),
    folder: Path = _FOLDER,
    run: str | None = typer.Option(None, "--run", help="Only this run; the study stays."),
    yes: bool = typer.Option(False, "--yes", help="Do not ask."),
) -> None:
    """Remove a study with all its messages, or one run, also while the relay runs.

    What was removed cannot be put back, and the runs take no messages any more: a party whose home
    was restored from a backup must not find an empty run and release again. Purge when all
    participants have their results.

    Example: splitmeans relay study purge study.toml --run 2025-q1 --folder messages
    """
    place = folder.expanduser()
    digits = _digits(study, place)
    what = f"run {run!r}" if run is not None else "all runs"
    question = f"remove {what} of study {digits[:12]} from {place} for good?"
    if not yes and not typer.confirm(question, err=True):
        raise ParameterError("nothing was removed")
    purge(place, digits, run=run)
    print_text(err, f"removed {what} of study {digits[:12]}")


def _about(place: Path, digits: str, study: Study | None) -> dict[str, Any]:
    runs = sorted(item for item in (place / "messages" / digits).glob("*") if item.is_dir())
    times = [file.stat().st_mtime for run in runs for file in run.iterdir()]
    last = datetime.fromtimestamp(max(times), UTC) if times else None
    return {
        "study": digits,
        "name": None if study is None else study.name,
        "participants": [] if study is None else list(study.public_keys),
        "runs": [run.name for run in runs],
        "last_message": None if last is None else last.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


def _digits(study: str, place: Path) -> str:
    """Return the first 32 digits of the hash of a study that the relay has."""
    if not _DIGITS.fullmatch(study):
        return Study.read(Path(study)).hash[:32]
    known = {item.stem for item in (place / FOLDER).glob("*.toml")}
    known |= {item.name for item in (place / "messages").glob("*")}
    fitting = sorted(digits for digits in known if digits.startswith(study[:32]))
    if len(fitting) != 1:
        raise ParameterError(
            f"{study}: {len(fitting)} studies of {place} begin with these digits; `splitmeans "
            "relay study list` shows them"
        )
    return fitting[0]
