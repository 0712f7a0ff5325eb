"""The relay: a mailbox over HTTPS, for participants who share no folder.

Four requests exist, PUT and GET of one message, GET of a participant's own limits and PUT of the
room that it will need, each signed (`request_signature.py`) by a participant of the study. The
relay sees sealed bytes, sizes and times; it can hold messages back and nothing else. What it says
to one participant does not depend on what others have stored. It runs as one process: what it
remembers of requests is in memory.
"""

import asyncio
import errno
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import BinaryIO

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from splitmeans._version import __version__
from splitmeans.errors import ParameterError
from splitmeans.mailbox.request_signature import Verifier
from splitmeans.relay.access import Access, Caller, Refused, naming
from splitmeans.relay.book import EventBook
from splitmeans.relay.gate import keep_open
from splitmeans.relay.limits import RelayLimits
from splitmeans.relay.metrics import Metrics
from splitmeans.relay.purge import take_requests
from splitmeans.relay.replies import Download, Refusal
from splitmeans.relay.store import (
    NoRoom,
    RelayStore,
    RunPurged,
    SenderRun,
    SlotTaken,
)
from splitmeans.relay.study_files import StudyWatch
from splitmeans.relay.upload import MessageTooLarge, Upload
from splitmeans.templates import render
from splitmeans.wire.slot import check_run

_log = logging.getLogger("splitmeans.relay")

_AFTER_FAILURE = 10.0  # seconds

# Bytes are handed to the disk in pieces of this size: large enough that a thread is worth it.
_PIECE = 256 << 10


def make_app(
    rosters: Mapping[str, Mapping[str, Verifier]],
    folder: Path,
    limits: RelayLimits | None = None,
    *,
    clock: Callable[[], float] = time.time,
    studies: StudyWatch | None = None,
    metrics: Metrics | None = None,
    every_second: Callable[[], object] = lambda: None,
) -> Starlette:
    """Return the relay as an ASGI application; `relay_serve.serve` runs it.

    `rosters` has for each study, by its hash of 64 digits, the public key of each participant by
    name, the server included; `studies` takes its place whenever its studies change. Messages in
    the folder are still there after a restart. `every_second` is called about once a second.
    """
    limits = limits or RelayLimits()
    metrics = metrics or Metrics()
    access = Access(rosters, limits, clock=clock)
    store = RelayStore(folder, limits, participants=access.participants)
    book = EventBook(access.name_of, metrics)
    book.room(store)

    async def keep_house() -> None:
        while True:
            changed = None if studies is None else await asyncio.to_thread(studies.look)
            if changed is not None:
                access.set_rosters(changed)
                await asyncio.to_thread(store.set_participants, access.participants)
                book.room(store)
            await asyncio.to_thread(take_requests, store)
            every_second()
            await asyncio.sleep(1.0)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        housekeeping = asyncio.create_task(_going_on(keep_house))
        yield
        housekeeping.cancel()
        store.close()

    async def put_message(request: Request) -> Response:
        try:
            caller = access.admit("PUT", request.path_params["path"], request.headers)
            keep_open(request, caller.key)
            _check_length(request, limits)
            with naming(caller.key), access.transfer(caller):
                return await _receive(request, caller, store=store, limits=limits)
        except Refused as refused:
            return Refusal(refused)

    async def get_message(request: Request) -> Response:
        try:
            caller = access.admit("GET", request.path_params["path"], request.headers)
            keep_open(request, caller.key)
        except Refused as refused:
            return Refusal(refused)
        return Download(
            lambda: _open(store, caller),
            slot=lambda: access.transfer(caller),
            limits=limits,
            caller=caller.key,
        )

    async def get_limits(request: Request) -> Response:
        study: str = request.path_params["study"]
        try:
            signed = access.admit_to_study("GET", study, f"{study}/limits", request.headers)
            keep_open(request, (study, signed.participant))
        except Refused as refused:
            return Refusal(refused)
        told = {
            "message_bytes": limits.message_bytes,
            "free_bytes": store.free_bytes(study, signed.participant),
            "time": int(clock()),
        }
        return JSONResponse(told, headers={"cache-control": "no-store"})

    async def reserve(request: Request) -> Response:
        study, run, n_bytes = (request.path_params[name] for name in ("study", "run", "n_bytes"))
        try:
            path = f"{study}/runs/{run}/room/{n_bytes}"
            signed = access.admit_to_study("PUT", study, path, request.headers)
            keep_open(request, (study, signed.participant))
            place = SenderRun(study=study, run=run, sender=signed.participant)
            with naming((study, signed.participant)):
                await asyncio.to_thread(_reserve, store, place, n_bytes)
        except Refused as refused:
            return Refusal(refused)
        return Response(status_code=204)

    async def health(_: Request) -> Response:
        state = await asyncio.to_thread(_state, store, metrics)
        return JSONResponse(state, status_code=200 if state["status"] == "ok" else 503)

    async def show_metrics(_: Request) -> Response:
        text = metrics.text(n_studies=access.n_studies)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    async def front_page(_: Request) -> Response:
        policy = "default-src 'none'; style-src 'unsafe-inline'"
        state = await asyncio.to_thread(_state, store, metrics)
        page = render("relay.html.jinja", **state)
        return HTMLResponse(page, headers={"content-security-policy": policy})

    app = Starlette(
        routes=[
            _route("PUT", "/v1/messages/{path:path}", put_message),
            _route("GET", "/v1/messages/{path:path}", get_message),
            _route("GET", "/v1/studies/{study}/limits", get_limits),
            _route("PUT", "/v1/studies/{study}/runs/{run}/room/{n_bytes}", reserve),
            _route("GET", "/health", health),
            _route("GET", "/metrics", show_metrics),
            _route("GET", "/", front_page),
        ],
        exception_handlers={HTTPException: _elsewhere},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False  # a signature is for one path
    app.state.store = store
    app.state.book = book
    return app


async def _going_on(work: Callable[[], Awaitable[None]]) -> None:
    """Do work that has no end; an error is told, and it begins again."""
    while True:
        try:
            await work()
        except Exception:  # whatever it is, messages are still taken and handed out
            _log.exception("the relay's housekeeping failed; it is tried again")
            await asyncio.sleep(_AFTER_FAILURE)


def _route(method: str, path: str, answer: Callable[[Request], Awaitable[Response]]) -> Route:
    route = Route(path, answer)
    route.methods = {method}  # Starlette adds HEAD to GET, and no request is signed for that
    return route


async def _elsewhere(_: Request, problem: Exception) -> Response:
    status = problem.status_code if isinstance(problem, HTTPException) else 404
    return Refusal(Refused("no such page", status=status, code="no-page", is_stranger=True))


def _check_length(request: Request, limits: RelayLimits) -> None:
    """Refuse early what says itself that it is too long; who says nothing is counted."""
    length = request.headers.get("content-length", "")
    # By its digits first: Python refuses to read a number with thousands of them.
    if length.isdecimal() and (len(length) > 18 or int(length) > limits.message_bytes):
        raise _too_large(limits)


def _too_large(limits: RelayLimits) -> Refused:
    text = f"a message may have {limits.message_bytes} bytes"
    return Refused(text, status=413, code="too-large")


async def _receive(
    request: Request, caller: Caller, *, store: RelayStore, limits: RelayLimits
) -> Response:
    upload: Upload | None = None
    try:
        async with asyncio.timeout(limits.transfer_seconds):
            upload = store.begin(caller.path)  # not in a thread: its result must not get lost
            async for piece in _pieces(request, limits):
                await asyncio.to_thread(upload.write, piece)
            stored = await asyncio.to_thread(upload.commit, body_hash=caller.body_hash)
    except TimeoutError:
        raise Refused("the upload was too slow", status=408, code="too-slow") from None
    except ClientDisconnect:
        return Response(status_code=400)  # nobody reads it
    except MessageTooLarge as problem:
        raise Refused(str(problem), status=413, code="too-large") from None
    except NoRoom as problem:
        raise Refused(str(problem), status=507, code="study-full") from None
    except SlotTaken as problem:
        raise Refused(str(problem), status=409, code="conflict") from None
    except RunPurged as problem:
        raise _gone(problem) from None
    except OSError as problem:
        if problem.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        request.app.state.book.disk_full(str(store.folder))
        raise Refused("the relay's disk is full", status=507, code="disk-full") from None
    finally:
        if upload is not None:
            upload.discard()
    if stored is None:
        raise Refused("the body is not the one that was signed", status=400, code="body")
    book: EventBook = request.app.state.book
    if stored:
        book.stored(caller.path, request.scope.get("client"))
    else:
        book.stored_before()
    return Response(status_code=201 if stored else 204)


async def _pieces(request: Request, limits: RelayLimits) -> AsyncIterator[bytearray]:
    """Pass on the body in larger pieces; one that is too slow ends with TimeoutError."""
    stream = request.stream()
    piece = bytearray()
    n_received, start = 0, time.monotonic()
    while True:
        try:
            async with asyncio.timeout(limits.idle_seconds):
                chunk = await anext(stream)
        except StopAsyncIteration:
            break
        n_received += len(chunk)
        if n_received > limits.message_bytes:
            raise MessageTooLarge(f"a message may have {limits.message_bytes} bytes")
        taken = time.monotonic() - start
        if taken > limits.idle_seconds and n_received < limits.upload_rate * taken:
            raise TimeoutError
        piece += chunk
        if len(piece) >= _PIECE:
            yield piece
            piece = bytearray()
    yield piece


def _open(store: RelayStore, caller: Caller) -> BinaryIO:
    try:
        file = store.open(caller.path)
    except RunPurged as problem:
        raise _gone(problem) from None
    if file is None:
        raise Refused("there is no such message yet", status=404, code="absent")
    return file


def _reserve(store: RelayStore, place: SenderRun, n_bytes: str) -> None:
    try:
        check_run(place.run)
    except ParameterError as problem:
        raise Refused(str(problem), status=400, code="room") from None
    if not (n_bytes.isascii() and n_bytes.isdecimal() and len(n_bytes) <= 18):
        raise Refused("room is a number of bytes", status=400, code="room")
    try:
        store.reserve(place, int(n_bytes))
    except NoRoom as problem:
        raise Refused(str(problem), status=507, code="study-full") from None
    except RunPurged as problem:
        raise _gone(problem) from None


def _gone(problem: RunPurged) -> Refused:
    return Refused(str(problem), status=410, code="purged")


def _state(store: RelayStore, metrics: Metrics) -> dict[str, str | int]:
    """Return what anybody may know; nothing of it depends on what participants store.

    Nor on how full the disk is: who fills its own share could find out from that what others store.
    """
    return {
        "status": "ok" if store.is_usable() else "the folder of messages is gone",
        "version": __version__,
        "uptime_seconds": metrics.uptime_seconds,
    }
