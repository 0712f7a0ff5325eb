"""Answers that are made up, as a library for HTTP writes them, for the relay's client."""

from collections.abc import Callable, Iterator, Mapping

import httpx


class MadeUp:
    """Hands requests to a function and takes its answers; what it raises is raised."""

    def __init__(self, answer: Callable[[httpx.Request], httpx.Response]) -> None:
        self._answer = answer

    def ask(
        self, method: str, url: str, *, headers: Mapping[str, str], data: bytes | None
    ) -> "MadeUpAnswer":
        request = httpx.Request(method, url, headers=dict(headers), content=data)
        return MadeUpAnswer(self._answer(request))

    def close(self) -> None:
        pass


class MadeUpAnswer:
    """An answer whose body is not read yet."""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self.status = response.status_code

    def header(self, name: str) -> str:
        found: str = self._response.headers.get(name, "")
        return found

    def pieces(self) -> Iterator[bytes]:
        if self._response.is_stream_consumed:
            yield self._response.content
        else:
            yield from self._response.iter_raw()

    def close(self) -> None:
        pass
