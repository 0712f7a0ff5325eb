"""`splitmeans relay serve`: the mailbox over HTTPS."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from splitmeans.cli.console import Quiet, err
from splitmeans.cli.json_log import LOG_FORMAT, LogFormat
from splitmeans.cli.relay_study import app as study_commands
from splitmeans.cli.sizes import parse_size
from splitmeans.errors import ParameterError
from splitmeans.relay.limits import ConnectionLimits, RelayLimits
from splitmeans.study import Study

if TYPE_CHECKING:
    from splitmeans.relay.metrics import Metrics

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Pass messages between participants over HTTPS.",
)
app.add_typer(study_commands, name="study")

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
