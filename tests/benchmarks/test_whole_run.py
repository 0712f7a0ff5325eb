"""The timed run is a real one: five processes that end well, and a baseline beside it."""

import pytest

from benchmarks.whole_run import run_once
from splitmeans.errors import ParameterError


@pytest.mark.slow
def test_a_whole_run_is_timed_beside_bare_starts():
    figures = run_once(500)
    assert figures["users"] == 500
    assert figures["seconds"] > 0
    assert figures["processor_seconds"] > figures["bare_processor_seconds"] > 0
    assert figures["ratio"] == pytest.approx(figures["seconds"] / figures["bare_seconds"])


def test_too_few_users_are_refused():
    with pytest.raises(ParameterError, match="users must be a whole number >= 100, got 99"):
        run_once(99)
