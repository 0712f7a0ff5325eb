"""A mailbox that is a relay, reached over HTTPS.

The client only sends requests, so no port is open at a participant. It believes nothing that the
relay says: sizes are bounded while reading, redirects are not followed, and the messages
themselves are sealed and signed by their senders.
"""

import hashlib
import json
import ssl
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from splitmeans import _validate
from splitmeans._version import __version__
from splitmeans.errors import (
    MailboxError,
    MailboxUnavailable,
    MessageExists,
    MessageRefused,
    ParameterError,
)
from splitmeans.mailbox.certificates import certificate_problem, explain_refused
from splitmeans.mailbox.connections import (
    Answer,
    Connections,
    LineError,
    NoAnswerInTime,
    NoConnection,
    NoConnectionInTime,
    Transport,
)
from splitmeans.mailbox.open import (
    MAX_STORED_BYTES,
    IsJunk,
    MailboxLimits,
    MessagePath,
    never,
    public_url,
    study_folder,
)
from splitmeans.mailbox.request_signature import EMPTY_HASH, Signer, sign_request
from splitmeans.mailbox.retries import TRANSFER_SECONDS, Retries, TryAgain
from splitmeans.wire.slot import check_run

_Result = TypeVar("_Result")

_TRY_AGAIN = (408, 429, 502, 503, 504)
_PASSING = (*_TRY_AGAIN, 500, 507)  # may be over when the same command is given later
_REASON_BYTES = 4096
_HEADERS = {
    "user-agent": f"splitmeans/{__version__}",
    "accept-encoding": "identity",  # sealed bytes do not shrink
}

# Answers that a proxy in front of the relay gives.
_WITHOUT_REASON = {
    413: "the message is too large for a proxy in front of the relay",
    429: "too many requests",
    502: "a proxy cannot reach the relay",
    503: "the relay is overloaded",
    504: "a proxy cannot reach the relay",
}


class HttpMailbox:
    """Messages at a relay.

    Args:
        url: `https://host:port`, with a path if the relay is behind a proxy.
        participant: Name of the participant who asks.
        signer: The participant's private key.
        ca: File with the authority's certificates, PEM, that are trusted instead of the system's.
        timeout: Seconds to wait for a connection and for each answer.
        use_proxy: Go through the proxy that the environment names (`HTTPS_PROXY`, `NO_PROXY`).
        retries: How long a relay that does not answer is asked again.
        transport: How requests travel; for tests.
        clock: Unix time in seconds; for tests.
    """

    def __init__(
        self,
        url: str,
        *,
        participant: str,
        signer: Signer,
        ca: Path | None = None,
        timeout: float = 30.0,
        use_proxy: bool = False,
        retries: Retries | None = None,
        transport: Transport | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        _validate.positive(timeout=timeout)
        _check_url(url)
        self._url = url.rstrip("/")
        self._shown_url = public_url(self._url)
        self._participant = participant
        self._signer = signer
        self._ca = ca
        self._retries = retries or Retries()
        self._clock = clock
        trusted = _trusted(ca)
        self._transport = transport or Connections(
            self._url, trusted=trusted, timeout=timeout, use_proxy=use_proxy
        )

    def __repr__(self) -> str:
        return f"HttpMailbox({self._shown_url!r}, participant={self._participant!r})"

    def put(
        self,
        path: str,
        data: bytes,
        *,
        is_junk: IsJunk = never,
        max_bytes: int = MAX_STORED_BYTES,
    ) -> None:
        """Store a message; the relay keeps the first bytes of a slot and refuses others.

        Only the sender can fill its slots, so there is never junk in them.
        """
        MessagePath.parse(path)
        read = partial(self._read_stored, n_bytes=len(data))
        self._ask("PUT", f"messages/{path}", signed=path, data=data, read=read)

    def get(self, path: str, *, max_bytes: int) -> bytes | None:
        """Return a message, or None if it is not there yet."""
        _validate.at_least(0, max_bytes=max_bytes)
        MessagePath.parse(path)
        read = partial(self._read_message, max_bytes=max_bytes)
        return self._ask("GET", f"messages/{path}", signed=path, read=read)

    def limits(self, study_hash: str) -> MailboxLimits:
        """Ask the relay what it takes; it answers participants of the study only."""
        study = study_folder(study_hash)
        return self._ask(
            "GET", f"studies/{study}/limits", signed=f"{study}/limits", read=self._read_limits
        )

    def reserve(self, study_hash: str, run: str, n_bytes: int) -> None:
        """Have the relay keep room, so that it has to take what is sent after a charge."""
        study = study_folder(study_hash)
        check_run(run)
        self._ask(
            "PUT",
            f"studies/{study}/runs/{run}/room/{n_bytes}",
            signed=f"{study}/runs/{run}/room/{n_bytes}",
            read=self._read_reserved,
        )

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def _ask(
        self,
        method: str,
        page: str,
        *,
        signed: str,
        read: Callable[[Answer, float], _Result],
        data: bytes | None = None,
    ) -> _Result:
        """Send one request, several times if need be; each time it is signed anew.

        Args:
            method: "PUT" or "GET".
            page: What is asked for, after the version in the URL.
            signed: The path that the signature names.
            read: Reads the answer; gets the time when it was asked, too.
            data: The body.
        """
        body_hash = EMPTY_HASH if data is None else hashlib.sha256(data).hexdigest()

        def attempt() -> _Result:
            asked = self._clock()
            headers = sign_request(
                method,
                signed,
                body_hash=body_hash,
                participant=self._participant,
                signer=self._signer,
                time=int(asked),
            )
            url = f"{self._url}/v1/{page}"
            try:
                answer = self._transport.ask(method, url, headers=_HEADERS | headers, data=data)
                try:
                    if answer.status not in _TRY_AGAIN:
                        return read(answer, asked)
                    raise TryAgain(self._refusal(answer), after=_retry_after(answer))
                finally:
                    answer.close()
            except LineError as problem:
                if certificate_problem(problem) is not None:
                    raise self._unreachable(problem) from problem
                raise TryAgain(self._unreachable(problem)) from problem

        return self._retries.run(attempt)

    def _read_stored(self, answer: Answer, _: float, *, n_bytes: int) -> None:
        if answer.status == 413:
            raise self._too_large(answer, n_bytes)
        if answer.status == 409:
            raise MessageExists(
                f"relay {self._shown_url} holds another message of this participant in this place"
            )
        if answer.status not in (201, 204):
            raise self._refusal(answer)

    def _read_reserved(self, answer: Answer, _: float) -> None:
        if answer.status == 404:
            raise self._too_old(answer)
        if answer.status != 204:
            raise self._refusal(answer)

    def _too_old(self, answer: Answer) -> MailboxError:
        code, _text = _reason(answer)
        if code != "no-page":
            return self._no_relay()
        return MailboxError(
            f"relay {self._shown_url} does not tell its limits or keep room: it is of an older "
            "version; its operator should install this one, and start the relay again"
        )

    def _read_message(self, answer: Answer, _: float, *, max_bytes: int) -> bytes | None:
        if answer.status == 404:
            code, _text = _reason(answer)
            if code != "absent":
                raise self._no_relay()
            return None
        if answer.status != 200:
            raise self._refusal(answer)
        return _download(answer, max_bytes=max_bytes, shown_url=self._shown_url)

    def _read_limits(self, answer: Answer, asked: float) -> MailboxLimits:
        if answer.status == 404:
            raise self._too_old(answer)
        if answer.status != 200:
            raise self._refusal(answer)
        data = _download(answer, max_bytes=_REASON_BYTES, shown_url=self._shown_url)
        answered = self._clock()
        try:
            told = json.loads(data)
            most, free, time = (told[name] for name in ("message_bytes", "free_bytes", "time"))
        except (ValueError, KeyError, TypeError):
            raise self._no_relay() from None
        if not all(type(value) is int and 0 <= value < 2**63 for value in (most, free, time)):
            raise self._no_relay()
        # The relay looked at its clock between our two looks at ours.
        offset = time - (asked + answered) / 2
        return MailboxLimits(
            max_message_bytes=most, free_bytes=free, clock_offset=offset, is_shared=False
        )

    def _too_large(self, answer: Answer, n_bytes: int) -> MailboxError:
        code, text = _reason(answer)
        least = f"{-(-n_bytes // 2**20)}M"
        if code == "too-large":
            said, who = (
                text,
                f"the relay's operator allows more (relay serve --max-message {least})",
            )
        else:
            said = _WITHOUT_REASON[413]
            who = f"its operator allows more (nginx: client_max_body_size {least.lower()})"
        return MailboxError(
            f"relay {self._shown_url} answered 413: {said}, this one has {n_bytes}; nothing is "
            f"lost: when {who}, the same command goes on. Or all participants go on with the same "
            "run over a folder, SFTP or an object store, which have no such limit: the same "
            "commands with another --mailbox"
        )

    def _no_relay(self) -> MailboxError:
        return MailboxError(f"{self._shown_url} is not a splitmeans relay; check the URL")

    def _refusal(self, answer: Answer) -> MailboxError:
        code, text = _reason(answer)
        hints = {
            "stranger": "this participant's key is not in the study that the relay serves; compare "
            "the study files and keys",
            "clock": f"{text}; set this machine's clock",
            "study-full": f"{text}; ask the relay's operator to remove old runs or to allow more "
            "(splitmeans relay serve --max-study)",
        }
        if 300 <= answer.status < 400:
            said = "it redirects to another place; give the URL of the relay itself"
        else:
            said = (
                hints.get(code)
                or text
                or _WITHOUT_REASON.get(
                    answer.status, "it gives no reason; check that the URL is a relay's"
                )
            )
        kind = MailboxUnavailable if answer.status in _PASSING else MailboxError
        return kind(f"relay {self._shown_url} answered {answer.status}: {said}")

    def _unreachable(self, problem: Exception) -> MailboxError:
        certificate = certificate_problem(problem)
        if certificate is not None:
            parts = urlsplit(self._url)
            said = explain_refused(
                certificate,
                address=(parts.hostname or "", parts.port or 443),
                ca=self._ca,
                now=datetime.fromtimestamp(self._clock(), UTC),
            )
        elif isinstance(problem, NoConnectionInTime):
            said = "no connection in time; check address, port and firewall"
        elif isinstance(problem, NoConnection):
            said = f"no connection ({problem}); check address and port, and that it runs"
        elif isinstance(problem, NoAnswerInTime):
            said = "no answer in time"
        else:
            said = f"the connection broke ({type(problem.__cause__ or problem).__name__})"
        kind = MailboxError if certificate is not None else MailboxUnavailable
        return kind(f"relay {self._shown_url}: {said}")


def _check_url(url: str) -> None:
    parts = urlsplit(url)
    if not parts.hostname or parts.username or parts.password or parts.query or parts.fragment:
        raise ParameterError(
            f"{public_url(url)}: the URL of a relay has the form https://host:port, without user "
            "name, password and query"
        )
    is_here = parts.hostname in ("localhost", "127.0.0.1", "::1")
    if parts.scheme != "https" and not is_here:
        raise ParameterError(f"{public_url(url)}: a relay on another machine needs https://")


def _trusted(ca: Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca)
    except (OSError, ssl.SSLError) as problem:
        raise ParameterError(f"{ca}: no certificates in PEM form ({problem})") from problem


def _download(answer: Answer, *, max_bytes: int, shown_url: str) -> bytes:
    """Read the body, and stop as soon as it is longer than allowed."""
    too_large = MessageRefused(f"relay {shown_url} sends more than {max_bytes} bytes")
    length = answer.header("content-length")
    if length.isdecimal() and int(length) > max_bytes:
        raise too_large
    if answer.header("content-encoding") not in ("", "identity"):
        raise MailboxError(f"relay {shown_url}: a proxy changes messages on their way")
    deadline = time.monotonic() + TRANSFER_SECONDS
    data = bytearray()
    for piece in answer.pieces():
        data += piece
        if len(data) > max_bytes:
            raise too_large
        if time.monotonic() > deadline:
            raise MailboxUnavailable(f"relay {shown_url}: a download took too long")
    return bytes(data)


def _reason(answer: Answer) -> tuple[str, str]:
    """Read code and text of a refusal; what is not of the relay's form is not shown."""
    try:
        fields = json.loads(_download(answer, max_bytes=_REASON_BYTES, shown_url=""))
        code, text = fields["code"], fields["error"]
    except (MessageRefused, MailboxError, ValueError, KeyError, TypeError):
        return "", ""
    if not isinstance(code, str) or not isinstance(text, str):
        return "", ""
    return code, "".join(c for c in text if c.isprintable())[:300]


def _retry_after(answer: Answer) -> float:
    value = answer.header("retry-after")
    return min(60.0, float(value)) if value.isdecimal() else 0.0
