"""The relay's log: who asked for what from where, bounded whatever anyone sends.

Anybody who can reach the relay can make it refuse requests, thousands a second. Of each kind of
line the first ones in a minute are written and the rest is counted; when the minute is over one
line says how many were left out and where most of them came from.
"""

import ipaddress
import json
import logging
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

log = logging.getLogger("splitmeans.relay")

WINDOW_SECONDS = 60.0
_MOST_ADDRESSES = 256  # that are told apart while lines are left out


def tell(event: str, text: str, *, level: int = logging.INFO, **facts: str | int) -> None:
    """Log an event: a text for people, and the same as facts for programs.

    The text has the names of facts in braces. Facts are names, addresses and codes, never how long
    a message is.
    """
    log.log(level, text.format(**facts), extra={"event": event, "facts": facts})


def shown_address(client: Any) -> str:
    """Return the address of who asks, as a connection or a proxy in front tells it."""
    host = client[0] if client else ""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:  # a proxy may pass on what anybody wrote
        return "unknown"


class TextLines(logging.Formatter):
    """Lines for people."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as a line; of other programs' records there is only the text."""
        moment = datetime.fromtimestamp(record.created, UTC)
        line = {
            "time": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "event": getattr(record, "event", "log"),
            "participant": "relay",
        }
        if record.exc_info:
            line["text"] = self.formatException(record.exc_info)
        elif not hasattr(record, "event"):
            line["text"] = record.getMessage()
        return json.dumps(line | getattr(record, "facts", {}), ensure_ascii=False)


@dataclass(kw_only=True)
class _Window:
    """What came of one kind of line since a moment."""

    since: float
    n_lines: int = 0
    n_left_out: int = 0
    addresses: Counter[str] = field(default_factory=Counter)


class LineLimit(logging.Filter):
    """Lets the first lines of each kind in a minute pass."""

    def __init__(self, lines: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._lines = lines
        self._clock = clock
        self._windows: dict[str, _Window] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether a line is written."""
        if getattr(record, "event", "") == "left_out":
            return True
        self.flush()
        facts = getattr(record, "facts", {})
        # Words that strangers choose, such as an address, make no kind of their own.
        kind = f"{getattr(record, 'event', record.msg)} {facts.get('code', '')}".strip()
        window = self._windows.setdefault(kind, _Window(since=self._clock()))
        window.n_lines += 1
        if window.n_lines <= self._lines:
            return True
        window.n_left_out += 1
        address = str(facts.get("address", ""))
        if address in window.addresses or len(window.addresses) < _MOST_ADDRESSES:
            window.addresses[address] += 1
        return False

    def flush(self, *, everything: bool = False) -> None:
        """End the minutes that are over, and log of each what was left out; `everything`: now."""
        now = self._clock()
        over = [
            kind
            for kind, window in self._windows.items()
            if everything or now - window.since >= WINDOW_SECONDS
        ]
        for kind, window in [(kind, self._windows.pop(kind)) for kind in over]:
            if window.n_left_out:
                _tell_left_out(kind, window, seconds=round(now - window.since))


def _tell_left_out(kind: str, window: _Window, *, seconds: int) -> None:
    ((most, _),) = window.addresses.most_common(1)
    more = " or more" if len(window.addresses) == _MOST_ADDRESSES else ""
    tell(
        "left_out",
        "left out {lines} more lines of the kind {kind!r} in {seconds} seconds, from {addresses}"
        f"{more} addresses, most from {{address}}",
        level=logging.WARNING,
        lines=window.n_left_out,
        kind=kind,
        seconds=seconds,
        addresses=len(window.addresses),
        address=most or "unknown",
    )


def set_up(*, json_lines: bool, quiet: bool, lines_per_minute: int) -> LineLimit:
    """Write the relay's log to stderr; return what bounds it."""
    limit = LineLimit(lines_per_minute)
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if json_lines else TextLines())
    handler.addFilter(limit)
    level = logging.WARNING if quiet else logging.INFO
    logging.basicConfig(level=level, handlers=[handler], force=True)
    return limit
