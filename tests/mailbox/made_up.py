"""Answers that are made up, for the relay's client."""

from collections.abc import Callable, Iterator

import httpx


class MadeUp(httpx.BaseTransport):
    """Hands requests to a function and takes its answers; what it raises is raised."""

    def __init__(self, answer: Callable[[httpx.Request], httpx.Response]) -> None:
        self._answer = answer

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.read()
        answer = self._answer(request)
        if not answer.is_stream_consumed:
            return answer
        stream = _Once(answer.content)
        return httpx.Response(answer.status_code, headers=answer.headers, stream=stream)


class _Once(httpx.SyncByteStream):
    """A body that is not read yet."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def __iter__(self) -> Iterator[bytes]:
        yield self._content
