"""How a relay bears many parties at once: all upload, then all fetch, over TLS on this machine.

Clients and relay share the machine's cores, so the figures are a lower bound of what the relay
alone can do.
"""

import os
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from benchmarks.local_relay import LocalRelay, local_relay
from splitmeans import _validate
from splitmeans.errors import MailboxError
from splitmeans.mailbox.http import HttpMailbox
from splitmeans.wire.identity import Identity
from splitmeans.wire.slot import SERVER, Slot

_STUDY = "5a" * 32


def run_load(parties: int = 50, megabytes: float = 5) -> dict[str, float]:
    """Let every party upload one message to the next, all at once, then fetch its own.

    Args:
        parties: Number of parties, each with a connection of its own.
        megabytes: Size of each message.

    Returns:
        Seconds for all uploads and all downloads, their rate in MB/s, the median and the longest
        time of one party, the relay's processor seconds and its peak memory (MB; where the system
        tells them), and the number of messages that came back changed (0).
    """
    _validate.at_least(2, parties=parties)
    _validate.positive(megabytes=megabytes)
    names = [f"party-{number}" for number in range(parties)]
    keys = {name: Identity.new() for name in names}
    message = os.urandom(int(megabytes * 1e6))
    paths = [
        Slot(study_hash=_STUDY, run="load", sender=name, receiver=SERVER, kind="PartyRelease").path
        for name in names
    ]
    everyone = keys | {SERVER: Identity.new()}
    rosters = {_STUDY: {name: key.public for name, key in everyone.items()}}
    with tempfile.TemporaryDirectory() as folder, local_relay(rosters, Path(folder)) as relay:
        boxes = [
            HttpMailbox(relay.url, participant=name, signer=keys[name], ca=relay.ca)
            for name in names
        ]

        def put(number: int) -> bool:
            boxes[number].put(paths[number], message)
            return True

        def get(number: int) -> bool:
            found = boxes[number].get(paths[number], max_bytes=len(message))
            return found == message

        up_seconds, up_times, _ = _all_at_once(put, parties)
        down_seconds, down_times, intact = _all_at_once(get, parties)
        usage = _process_usage(relay)
        for box in boxes:
            box.close()
    total = parties * len(message) / 1e6
    return {
        "parties": parties,
        "megabytes": megabytes,
        "upload_seconds": up_seconds,
        "upload_megabytes_per_second": total / up_seconds,
        "upload_median_seconds": float(np.median(up_times)),
        "upload_longest_seconds": max(up_times),
        "download_seconds": down_seconds,
        "download_megabytes_per_second": total / down_seconds,
        "download_median_seconds": float(np.median(down_times)),
        "download_longest_seconds": max(down_times),
        "changed_messages": intact.count(False),
        **usage,
    }


def _all_at_once(
    action: Callable[[int], bool], count: int
) -> tuple[float, list[float], list[bool]]:
    start = threading.Barrier(count + 1)

    def timed(number: int) -> tuple[float, bool]:
        start.wait()
        began = time.perf_counter()
        done = action(number)
        return time.perf_counter() - began, done

    with ThreadPoolExecutor(count) as pool:
        waiting = [pool.submit(timed, number) for number in range(count)]
        start.wait()
        began = time.perf_counter()
        results = [one.result() for one in waiting]
        seconds = time.perf_counter() - began
    return seconds, [taken for taken, _ in results], [done for _, done in results]


def _process_usage(relay: LocalRelay) -> dict[str, float]:
    """Read the relay's processor time and peak memory where the system has /proc."""
    place = Path(f"/proc/{relay.process.pid}")
    if relay.process.poll() is not None:
        raise MailboxError("the relay ended during the load")
    if not place.exists():
        return {}
    status = dict(
        line.split(":", 1) for line in (place / "status").read_text().splitlines() if ":" in line
    )
    fields = (place / "stat").read_text().rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])  # user and system time, fields 14 and 15 of stat(5)
    return {
        "relay_cpu_seconds": ticks / os.sysconf("SC_CLK_TCK"),
        "relay_peak_megabytes": int(status["VmHWM"].split()[0]) / 1000,
    }
