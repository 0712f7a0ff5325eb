"""Stopping a command: by Ctrl-C, by SIGTERM as `kill` and service managers send it, or by SIGHUP.

SIGHUP comes when a terminal or a connection is closed. All of them end a command through its
clean-up code, so that nothing of a party's table stays in files of the run. What must survive is on
disk at every instant anyway.
"""

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import TypeVar

import typer

from splitmeans.errors import ParameterError

T = TypeVar("T")

# As shells report a process that a signal ended: 130, 143, 129.
_CODES = {number: 128 + number for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}


@dataclass(kw_only=True)
class Stop:
    """Whether and how this command was stopped.

    Attributes:
        code: Its exit code; None if it was not stopped.
        goes_on: Whether the same command takes up what was stopped.
    """

    code: int | None = None
    goes_on: bool = False

    @property
    def words(self) -> str:
        """What people are told."""
        return "stopped; nothing is lost: the same command goes on" if self.goes_on else "stopped"


_current = Stop()


@contextlib.contextmanager
def stop_signals() -> Iterator[Stop]:
    """Handle these signals while a command runs; where the program has a main thread of its own."""
    global _current
    _current = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield _current
        return

    def stop(number: int, _: FrameType | None) -> None:
        _current.code = _CODES[signal.Signals(number)]
        raise KeyboardInterrupt

    before = {number: signal.getsignal(number) for number in _CODES}
    report = sys.unraisablehook

    def report_others(dropped: "sys.UnraisableHookArgs") -> None:
        if not issubclass(dropped.exc_type, KeyboardInterrupt):  # found by `check_stopped`
            report(dropped)

    sys.unraisablehook = report_others
    try:
        for number, handler in before.items():
            if handler != signal.SIG_IGN:  # as under nohup
                signal.signal(number, stop)
        yield _current
    finally:
        sys.unraisablehook = report
        for number, handler in before.items():
            signal.signal(number, handler)


def goes_on() -> None:
    """Say of the command that runs: if it is stopped, the same one goes on."""
    _current.goes_on = True


def check_stopped() -> None:
    """End a command whose stop got lost: what is raised where C code calls Python is dropped.

    A compiler of ours calls Python in that way, so that a Ctrl-C at its time would be one that a
    party does not hear before it joins, or releases.
    """
    if _current.code is not None:
        raise KeyboardInterrupt


def asked(question: Callable[[], T], *, instead: str) -> T:
    """Ask a person; without an answer `instead` says how to do without the question.

    The library takes Ctrl-C and the end of the input for the same; only one of them is a stop.
    """
    try:
        return question()
    except typer.Abort as problem:
        if isinstance(problem.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        raise ParameterError(instead) from None
