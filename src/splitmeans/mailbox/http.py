"""A mailbox that is a relay, reached over HTTPS.

The client only sends requests, so no port is open at a participant. It believes nothing that the
relay says: sizes are bounded while reading, redirects are not followed, and the messages
themselves are sealed and signed by their senders.
"""

import hashlib
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import httpx

from splitmeans import _validate
from splitmeans.errors import (
    MailboxError,
    MailboxUnavailable,
    MessageExists,
    MessageRefused,
)
from splitmeans.mailbox.certificates import certificate_problem, explain_refused
from splitmeans.mailbox.http_client import check_url, download, finish, new_client, parts
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
from splitmeans.mailbox.retries import Retries, TryAgain
from splitmeans.wire.slot import check_run

_Result = TypeVar("_Result")

_TRY_AGAIN = (408, 429, 502, 503, 504)
_PASSING = (*_TRY_AGAIN, 500, 507)  # may be over when the same command is given later
_REASON_BYTES = 4096

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
        transport: httpx.BaseTransport | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        _validate.positive(timeout=timeout)
        check_url(url)
        self._url = url.rstrip("/")
        self._shown_url = public_url(self._url)
        self._participant = participant
        self._signer = signer
        self._ca = ca
        self._retries = retries or Retries()
        self._clock = clock
        self._client = new_client(
            ca=ca,
            timeout=timeout,
            use_proxy=use_proxy and self._url.startswith("https"),
            transport=transport,
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
        self._client.close()

    def _ask(
        self,
        method: str,
        page: str,
        *,
        signed: str,
        read: Callable[[httpx.Response, float], _Result],
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
            request = self._client.build_request(
                method,
                f"{self._url}/v1/{page}",
                headers=headers | ({} if data is None else {"content-length": str(len(data))}),
                content=None if data is None else parts(data),
            )
            try:
                answer = self._client.send(request, stream=True)
                try:
                    if answer.status_code not in _TRY_AGAIN:
                        return read(answer, asked)
                    raise TryAgain(self._refusal(answer), after=_retry_after(answer))
                finally:
                    answer.close()
            except httpx.TransportError as problem:
                if certificate_problem(problem) is not None:
                    raise self._unreachable(problem) from problem
                raise TryAgain(self._unreachable(problem)) from problem

        return self._retries.run(attempt)

    def _read_stored(self, answer: httpx.Response, _: float, *, n_bytes: int) -> None:
        if answer.status_code == 413:
            raise self._too_large(answer, n_bytes)
        if answer.status_code == 409:
            raise MessageExists(
                f"relay {self._shown_url} holds another message of this participant in this place"
            )
        if answer.status_code not in (201, 204):
            raise self._refusal(answer)
        finish(answer)

    def _read_reserved(self, answer: httpx.Response, _: float) -> None:
        if answer.status_code == 404:
            raise self._too_old(answer)
        if answer.status_code != 204:
            raise self._refusal(answer)
        finish(answer)

    def _too_old(self, answer: httpx.Response) -> MailboxError:
        code, _text = _reason(answer)
        if code != "no-page":
            return self._no_relay()
        return MailboxError(
            f"relay {self._shown_url} does not tell its limits or keep room: it is of an older "
            "version; its operator should install this one, and start the relay again"
        )

    def _read_message(self, answer: httpx.Response, _: float, *, max_bytes: int) -> bytes | None:
        if answer.status_code == 404:
            code, _text = _reason(answer)
            if code != "absent":
                raise self._no_relay()
            return None
        if answer.status_code != 200:
            raise self._refusal(answer)
        return download(answer, max_bytes=max_bytes, shown_url=self._shown_url)

    def _read_limits(self, answer: httpx.Response, asked: float) -> MailboxLimits:
        if answer.status_code == 404:
            raise self._too_old(answer)
        if answer.status_code != 200:
            raise self._refusal(answer)
        data = download(answer, max_bytes=_REASON_BYTES, shown_url=self._shown_url)
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

    def _too_large(self, answer: httpx.Response, n_bytes: int) -> MailboxError:
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

    def _refusal(self, answer: httpx.Response) -> MailboxError:
        code, text = _reason(answer)
        hints = {
            "stranger": "this participant's key is not in the study that the relay serves; compare "
            "the study files and keys",
            "clock": f"{text}; set this machine's clock",
            "study-full": f"{text}; ask the relay's operator to remove old runs or to allow more "
            "(splitmeans relay serve --max-study)",
        }
        if 300 <= answer.status_code < 400:
            said = "it redirects to another place; give the URL of the relay itself"
        else:
            said = (
                hints.get(code)
                or text
                or _WITHOUT_REASON.get(
                    answer.status_code, "it gives no reason; check that the URL is a relay's"
                )
            )
        kind = MailboxUnavailable if answer.status_code in _PASSING else MailboxError
        return kind(f"relay {self._shown_url} answered {answer.status_code}: {said}")

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
        elif isinstance(problem, httpx.ConnectTimeout):
            said = "no connection in time; check address, port and firewall"
        elif isinstance(problem, httpx.ConnectError | httpx.ProxyError):
            said = f"no connection ({problem}); check address and port, and that it runs"
        elif isinstance(problem, httpx.TimeoutException):
            said = "no answer in time"
        else:
            said = f"the connection broke ({type(problem).__name__})"
        kind = MailboxError if certificate is not None else MailboxUnavailable
        return kind(f"relay {self._shown_url}: {said}")


def _reason(answer: httpx.Response) -> tuple[str, str]:
    """Read code and text of a refusal; what is not of the relay's form is not shown."""
    try:
        fields = json.loads(download(answer, max_bytes=_REASON_BYTES, shown_url=""))
        code, text = fields["code"], fields["error"]
    except (MessageRefused, MailboxError, ValueError, KeyError, TypeError):
        return "", ""
    if not isinstance(code, str) or not isinstance(text, str):
        return "", ""
    return code, "".join(c for c in text if c.isprintable())[:300]


def _retry_after(answer: httpx.Response) -> float:
    value = answer.headers.get("retry-after", "")
    return min(60.0, float(value)) if value.isdecimal() else 0.0
