"""A stop that got lost on its way is found at the next place where a run can stop."""

import ctypes
import os
import signal
import time

import pytest

from splitmeans.cli.stopping import check_stopped, stop_signals

CALLBACK = ctypes.CFUNCTYPE(None)


def stop_self() -> None:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.01)  # a place for Python to handle it


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_a_stop_that_c_code_drops(capfd):
    """As llvmlite does: what is raised in a function that C calls is reported and forgotten."""
    with stop_signals() as stop:
        check_stopped()
        CALLBACK(stop_self)()
        assert stop.code == 130
        with pytest.raises(KeyboardInterrupt):
            check_stopped()
    with stop_signals():
        check_stopped()  # a stop is of one command
    assert capfd.readouterr().err == ""
