import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans.errors import ParameterError
from splitmeans.wire.codec import _TYPES
from splitmeans.wire.slot import Slot, check_run, short_name

SLOT = Slot(study_hash="ab" * 32, run="r1", sender="bank", receiver="server", kind="Ready")
CHANGES = {
    "study_hash": "cd" * 32,
    "run": "r2",
    "sender": "shop",
    "receiver": "bank",
    "kind": "StageRelease_1",
}
PARTS = st.tuples(st.text(max_size=6), st.text(max_size=6), st.text(max_size=6))


def test_path_by_hand() -> None:
    # The first 16 hexadecimal digits of SHA-256 of "bank" and of "server".
    assert SLOT.path == "ab" * 16 + f"/r1/ready.{short_name('bank')}.{short_name('server')}"
    assert short_name("bank") == "4381dc2ab1428516"
    assert short_name("server") == "b3eacd33433b31b5"


def test_text_by_hand() -> None:
    small = Slot(study_hash="ab", run="r", sender="é", receiver="", kind="K")
    assert small.text == (
        b"\x02\0\0\0ab" + b"\x01\0\0\0r" + b"\x02\0\0\0\xc3\xa9" + b"\0\0\0\0" + b"\x01\0\0\0K"
    )


@pytest.mark.parametrize("part", CHANGES)
def test_every_part_changes_path_and_text(part: str) -> None:
    other = replace(SLOT, **{part: CHANGES[part]})
    assert other.path != SLOT.path
    assert other.text != SLOT.text


def test_direction_changes_path_and_text() -> None:
    back = replace(SLOT, sender=SLOT.receiver, receiver=SLOT.sender)
    assert back.path != SLOT.path
    assert back.text != SLOT.text


@settings(max_examples=50, deadline=None)
@given(one=PARTS, two=PARTS)
def test_no_two_slots_share_their_text(
    one: tuple[str, str, str], two: tuple[str, str, str]
) -> None:
    texts = [
        replace(SLOT, sender=sender, receiver=receiver, kind=kind).text
        for sender, receiver, kind in (one, two)
    ]
    assert (texts[0] == texts[1]) == (one == two)


def test_moving_a_letter_to_the_next_part_changes_the_text() -> None:
    one = replace(SLOT, sender="ab", receiver="c")
    two = replace(SLOT, sender="a", receiver="bc")
    assert one.text != two.text


@settings(max_examples=50, deadline=None)
@given(sender=st.text(max_size=20), receiver=st.text(max_size=20))
def test_paths_are_safe_whatever_participants_are_called(sender: str, receiver: str) -> None:
    for kind in _TYPES:
        slot = replace(SLOT, sender=sender, receiver=receiver, kind=kind)
        assert re.fullmatch(r"[0-9a-f]{32}/[a-z0-9-]{1,40}/[a-z]+(\.[0-9a-f]{16}){2}", slot.path)


def test_kinds_stay_apart_in_lower_case() -> None:
    assert len({kind.lower() for kind in _TYPES}) == len(_TYPES)


@pytest.mark.parametrize("run", ["a", "0", "2026-11-15", "a" * 40, "a--"])
def test_good_runs(run: str) -> None:
    check_run(run)


@pytest.mark.parametrize(
    "run", ["", "-a", "A", "a b", "a/b", "..", "a.b", "a" * 41, "ä", "a\n", "a\0", "\u0661"]
)
def test_bad_runs(run: str) -> None:
    with pytest.raises(ParameterError, match="run must be 1 to 40 lower-case letters, digits"):
        replace(SLOT, run=run)
