"""Dates of TLS certificates: a relay looks at its own at the start, a client at a refused one."""

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from splitmeans.errors import ParameterError

SOON = timedelta(days=14)

# OpenSSL's numbers for the two reasons that have a date.
_NOT_YET, _EXPIRED = 9, 10
_FETCH_SECONDS = 10.0


def check_own(cert: Path, *, now: datetime) -> list[str]:
    """Check the certificate that a relay is to serve with; return warnings.

    Args:
        cert: File with the chain, PEM; the relay's own certificate comes first.
        now: The time.

    Raises:
        ParameterError: Participants would refuse it today.
    """
    from cryptography import x509

    try:
        own, *others = x509.load_pem_x509_certificates(cert.read_bytes())
    except (OSError, ValueError) as problem:
        raise ParameterError(f"{cert}: no certificate in PEM form ({problem})") from problem
    if now > own.not_valid_after_utc:
        raise ParameterError(
            f"{cert}: the certificate expired on {_day(own.not_valid_after_utc)}, and every "
            "participant would refuse it; put a new one in its place"
        )
    if now < own.not_valid_before_utc:
        raise ParameterError(
            f"{cert}: the certificate is valid from {_day(own.not_valid_before_utc)} on, and it "
            f"is {_day(now)}; check this machine's clock, or wait until then"
        )
    warnings = []
    if own.not_valid_after_utc - now < SOON:
        warnings.append(
            f"{cert}: the certificate expires on {_day(own.not_valid_after_utc)}; get a new one "
            "and start the relay again before"
        )
    for other in others:
        if now > other.not_valid_after_utc:
            # Participants may know another way to a root that they trust.
            warnings.append(
                f"{cert}: the certificate of an authority in it expired on "
                f"{_day(other.not_valid_after_utc)}"
            )
    return warnings


def end_of(cert: Path) -> datetime:
    """Return when the first certificate of a file that was checked expires."""
    from cryptography import x509

    return x509.load_pem_x509_certificates(cert.read_bytes())[0].not_valid_after_utc


def explain_refused(
    problem: ssl.SSLCertVerificationError,
    *,
    address: tuple[str, int],
    ca: Path | None,
    now: datetime,
) -> str:
    """Say why a relay's certificate was refused, and who can mend it.

    Args:
        problem: The refusal.
        address: Host and port of the relay.
        ca: File with the authority that the client trusts, if it was given one.
        now: The time, by this machine's clock.
    """
    code = getattr(problem, "verify_code", 0)
    if code not in (_NOT_YET, _EXPIRED):
        return (
            f"its certificate is not trusted ({problem.verify_message}); give the certificate of "
            "its authority with --ca"
        )
    from cryptography import x509

    try:
        found = x509.load_pem_x509_certificate(_fetch(address).encode())
    except (OSError, ValueError):
        found = None
    here = f"if it is not {_day(now)} now, set this machine's clock"
    if code == _NOT_YET:
        since = "" if found is None else f": it is valid from {_day(found.not_valid_before_utc)} on"
        return f"the relay's certificate is not yet valid{since}; tell its operator, or {here}"
    if found is not None and now > found.not_valid_after_utc:
        return (
            f"the relay's certificate expired on {_day(found.not_valid_after_utc)}; tell its "
            f"operator ({here})"
        )
    expired = [] if ca is None else _expired(ca, now)
    if expired:
        return (
            f"the authority's certificate in {ca} expired on {expired[0]}; ask the relay's "
            f"operator for the new one ({here})"
        )
    return (
        "the certificate of an authority between the relay's and the one that you trust has "
        f"expired; tell the relay's operator ({here})"
    )


def _fetch(address: tuple[str, int]) -> str:
    """Return the certificate that is served, which nobody vouches for: for its dates only."""
    return ssl.get_server_certificate(address, timeout=_FETCH_SECONDS)


def _expired(ca: Path, now: datetime) -> list[str]:
    from cryptography import x509

    try:
        certificates = x509.load_pem_x509_certificates(ca.read_bytes())
    except (OSError, ValueError):
        return []
    ends = [certificate.not_valid_after_utc for certificate in certificates]
    return [_day(end) for end in ends if now > end]


def _day(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%d")


def certificate_problem(problem: BaseException) -> ssl.SSLCertVerificationError | None:
    """Return what was wrong with a certificate, if that is why a connection failed."""
    cause: BaseException | None = problem
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return cause
        cause = cause.__cause__ or cause.__context__
    return None
