"""Replies of the relay that need more care with the connection than a plain response.

A client sends its whole body before it reads the reply. If the relay closed the connection at once
after refusing, the client would see a broken connection and not the reason. So the reply goes out
first, then the relay discards, within bounds, what still comes, and closes the connection.
"""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import BinaryIO, ClassVar

from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from splitmeans.relay.access import Refused
from splitmeans.relay.limits import RelayLimits

_BLOCK = 256 << 10

# What is discarded after a refusal, and how many connections may be in that state.
_KNOWN_BYTES, _KNOWN_SECONDS = 256 << 20, 30.0
_STRANGER_BYTES, _STRANGER_SECONDS = 1 << 20, 2.0
_MOST_LINGERING = 64


class Refusal(JSONResponse):
    """The relay's reply to a request that it refuses."""

    _n_lingering: ClassVar[int] = 0

    def __init__(self, refused: Refused) -> None:
        headers = {"cache-control": "no-store"}
        if refused.retry_after is not None:
            headers["retry-after"] = str(refused.retry_after)
        super().__init__(
            {"code": refused.code, "error": str(refused)},
            status_code=refused.status,
            headers=headers,
        )
        self._is_stranger = refused.is_stranger
        self._refused = refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the reply, then discard what still comes of the request."""
        scope["app"].state.book.refused(self._refused, scope.get("client"))
        if not _has_body(scope):
            await super().__call__(scope, receive, send)
            return
        self.headers["connection"] = "close"
        start = {
            "type": "http.response.start",
            "status": self.status_code,
            "headers": self.raw_headers,
        }
        await send(start)
        await send({"type": "http.response.body", "body": bytes(self.body), "more_body": True})
        await self._discard_body(receive)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _discard_body(self, receive: Receive) -> None:
        if Refusal._n_lingering >= _MOST_LINGERING:
            return
        left = _STRANGER_BYTES if self._is_stranger else _KNOWN_BYTES
        seconds = _STRANGER_SECONDS if self._is_stranger else _KNOWN_SECONDS
        Refusal._n_lingering += 1
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    while left > 0:
                        message = await receive()
                        left -= len(message.get("body", b""))
                        if not message.get("more_body", False):
                            break
        finally:
            Refusal._n_lingering -= 1


class Download(Response):
    """A message, sent from its file in pieces.

    `open_file` opens the message and `slot` holds a place for a transfer; both may raise `Refused`.
    `caller` is study and short name of who asks.
    """

    def __init__(
        self,
        open_file: Callable[[], BinaryIO],
        *,
        slot: Callable[[], AbstractContextManager[None]],
        limits: RelayLimits,
        caller: tuple[str, str],
    ) -> None:
        super().__init__(
            media_type="application/octet-stream",
            headers={"cache-control": "no-store", "x-content-type-options": "nosniff"},
        )
        self._open_file = open_file
        self._slot = slot
        self._limits = limits
        self._caller = caller

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the file, or the reason why not."""
        try:
            with self._slot(), await asyncio.to_thread(self._open_file) as file:
                async with asyncio.timeout(self._limits.transfer_seconds):
                    await self._send_file(file, send)
            scope["app"].state.book.handed_out()
        except Refused as refused:
            refused.caller = self._caller
            await Refusal(refused)(scope, receive, send)
        except TimeoutError:
            book = scope["app"].state.book
            book.cut_off(self._caller, scope.get("client"))

    async def _send_file(self, file: BinaryIO, send: Send) -> None:
        left = file.seek(0, 2)
        file.seek(0)
        self.headers["content-length"] = str(left)
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(start)
        while True:
            block = await asyncio.to_thread(file.read, min(_BLOCK, left))
            left -= len(block)
            await send({"type": "http.response.body", "body": block, "more_body": left > 0})
            if left == 0:
                break


def _has_body(scope: Scope) -> bool:
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and value != b"0")
        for name, value in scope["headers"]
    )
