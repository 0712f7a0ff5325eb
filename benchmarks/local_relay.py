"""A relay on this machine, as a process of its own with a throw-away certificate.

For load figures and tests: everything is real (process, disk, TLS) but the network. Run as a
module it is that process: it reads its settings from standard input as JSON and writes its URL.
"""

import datetime
import ipaddress
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from splitmeans.errors import MailboxError
from splitmeans.relay.limits import ConnectionLimits, RelayLimits
from splitmeans.wire.identity import PublicIdentity

_STOP_SECONDS = 30


@dataclass(frozen=True, kw_only=True, eq=False)
class LocalRelay:
    """A running relay.

    Attributes:
        url: Its address.
        ca: File with the certificate of its authority.
        process: The process.
    """

    url: str
    ca: Path
    process: subprocess.Popen[str]


@contextmanager
def local_relay(
    rosters: Mapping[str, Mapping[str, PublicIdentity]],
    folder: Path,
    *,
    limits: RelayLimits | None = None,
    connections: ConnectionLimits | None = None,
) -> Iterator[LocalRelay]:
    """Run a relay for as long as the context lasts.

    Args:
        rosters: For each study hash its participants' identities by name.
        folder: An existing folder for messages, certificate and log.
        limits: Limits of the relay.
        connections: Limits of its connections.
    """
    ca, cert, key = (folder / name for name in ("ca.pem", "cert.pem", "key.pem"))
    if not ca.exists():
        write_certificate(ca=ca, cert=cert, key=key)
    settings = {
        "rosters": {
            study: {name: identity.to_text() for name, identity in roster.items()}
            for study, roster in rosters.items()
        },
        "folder": str(folder.absolute() / "messages"),
        "limits": asdict(limits or RelayLimits()),
        "connections": asdict(connections or ConnectionLimits()),
        "cert": str(cert.absolute()),
        "key": str(key.absolute()),
    }
    with (folder / "relay.log").open("a") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.local_relay"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=Path(__file__).parents[1],  # the module is found from the repository's root only
        )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(settings))
            process.stdin.close()
            url = process.stdout.readline().strip()
            if not url:
                raise MailboxError(f"the relay did not start; see {folder / 'relay.log'}")
            yield LocalRelay(url=url, ca=ca, process=process)
        finally:
            process.terminate()
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


def write_certificate(
    *,
    ca: Path,
    cert: Path,
    key: Path,
    days: tuple[float, float] = (-1, 30),
    ca_days: tuple[float, float] = (-1, 30),
) -> None:
    """Write an authority's certificate and one for this machine's own address.

    Args:
        ca: File for the authority's certificate.
        cert: File for the other one.
        key: File for its private key.
        days: From when until when it is good, in days from now.
        ca_days: The same for the authority's.
    """
    ca_key, server_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    ca_name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "throw-away authority")])
    server_name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    unused = (
        *("content_commitment", "key_encipherment", "data_encipherment", "key_agreement"),
        *("crl_sign", "encipher_only", "decipher_only"),
    )
    usage = dict.fromkeys(unused, False)
    authority = (
        _certificate(ca_name, ca_key, issuer=ca_name, issuer_key=ca_key, days=ca_days)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(
            x509.KeyUsage(digital_signature=False, key_cert_sign=True, **usage), critical=True
        )
        .sign(ca_key, hashes.SHA256())
    )
    addresses = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    server = (
        _certificate(server_name, server_key, issuer=ca_name, issuer_key=ca_key, days=days)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(addresses), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    ca.write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    cert.write_bytes(server.public_bytes(serialization.Encoding.PEM))
    key.touch(mode=0o600)
    key.write_bytes(
        server_key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )


def _certificate(
    name: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    *,
    issuer: x509.Name,
    issuer_key: ec.EllipticCurvePrivateKey,
    days: tuple[float, float],
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    begin, end = (now + datetime.timedelta(days=number) for number in days)
    issuer_id = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key())
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(issuer_id, critical=False)
    )


def _main() -> None:
    from splitmeans.relay.app import make_app
    from splitmeans.relay.serve import serve

    settings = json.load(sys.stdin)
    rosters = {
        study: {name: PublicIdentity.from_text(text) for name, text in roster.items()}
        for study, roster in settings["rosters"].items()
    }
    app = make_app(rosters, Path(settings["folder"]), RelayLimits(**settings["limits"]))

    def announce(url: str) -> None:
        sys.stdout.write(url + "\n")
        sys.stdout.flush()

    cert, key = Path(settings["cert"]), Path(settings["key"])
    connections = ConnectionLimits(**settings["connections"])
    serve(
        app,
        host="127.0.0.1",
        port=0,
        cert=cert,
        key=key,
        connections=connections,
        on_ready=announce,
    )


if __name__ == "__main__":
    _main()
