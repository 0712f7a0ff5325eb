"""`splitmeans relay serve`: the mailbox over HTTPS."""

import logging
from pathlib import Path

import typer

from splitmeans.cli.console import Quiet, err
from splitmeans.cli.sizes import parse_size
from splitmeans.errors import ParameterError
from splitmeans.relay.limits import RelayLimits
from splitmeans.run.post import pinned_keys
from splitmeans.study import Study

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Pass messages between participants over HTTPS.",
)


@app.callback()
def _group() -> None:
    """Keep `serve` a subcommand."""


@app.command()
def serve(
    study: list[Path] = typer.Option(..., "--study", help="Study whose participants may use it."),
    folder: Path = typer.Option(..., "--folder", help="Where messages are kept."),
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
    insecure: bool = typer.Option(
        False, "--insecure", help="Without TLS: tests, or a TLS proxy in front."
    ),
    quiet: Quiet = False,
) -> None:
    """Serve a mailbox over HTTPS; nobody has to trust it, messages are sealed and signed.

    Example: splitmeans relay serve --study study.toml --folder messages --tls-cert cert.pem
    --tls-key key.pem
    """
    try:
        from splitmeans.relay.app import make_app
        from splitmeans.relay.serve import serve as serve_app
    except ImportError as problem:
        raise ParameterError(
            f'the relay needs {problem.name}; install it with: pip install "splitmeans[relay]"'
        ) from problem
    logging.basicConfig(
        level=logging.WARNING if quiet else logging.INFO,
        format="%(asctime)s %(levelname)s %(message)s",
    )
    logging.getLogger("httpx").setLevel(logging.WARNING)
    agreed = [Study.read(path) for path in study]
    rosters = {one.hash: pinned_keys(one) for one in agreed}
    limits = RelayLimits(
        message_bytes=parse_size(max_message, option="--max-message"),
        study_bytes=parse_size(max_study, option="--max-study"),
    )
    serve_app(
        make_app(rosters, folder, limits),
        host=host,
        port=port,
        cert=tls_cert,
        key=tls_key,
        insecure=insecure,
        on_ready=_say_ready,
    )


def _say_ready(url: str) -> None:
    err.print(f"relay at {url}", markup=False, soft_wrap=True)
