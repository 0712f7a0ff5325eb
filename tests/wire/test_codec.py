import contextlib
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans.errors import ProtocolError
from splitmeans.wire import messages as m
from splitmeans.wire.codec import MAGIC, decode, encode

EXAMPLES = [
    m.KeyContribution(secret=bytes(range(32))),
    m.Confirmation(key_check=b"\x02" * 32, shared_check=b"\x05" * 32),
    m.Ready(study_hash="ab" * 32),
    m.PlanConfirmation(stage=1, plan_check=b"\x03" * 32),
    m.StageRelease(stage=2, values=np.array([-3, 2**40])),
    m.RunPlan(
        n_local_clusters=np.array([5, 5]),
        released=np.array([], int),
        fingerprint="ab",
        statement="",
    ),
    m.RunPlan(
        n_local_clusters=np.array([5, 5]),
        released=np.array([20_017]),
        fingerprint="ab",
        statement="cd",
    ),
    m.PartyRelease(
        centres=np.array([[1, -2], [3, 4]]),
        points=np.array([[5, -6], [2**30, -(2**30)], [0, 0]], dtype=np.int32),
        membership=m.CellSketchMessage(
            registers=np.array([[12, 13], [14, 65535]], dtype=np.uint16)
        ),
    ),
    m.PartyRelease(
        centres=np.array([[7]]),
        points=np.zeros((0, 1), dtype=np.int32),
        membership=m.DecoyMessage(
            lengths=np.array([2]),
            lows=np.array([3, 65535], dtype=np.uint16),
            bitmaps=np.array([5, 0], dtype=np.uint8),
            labels=np.array([1], dtype=np.uint8),
        ),
        column_edges=np.array([-5, 6]),
        columns=m.DecoyMessage(
            lengths=np.array([0]),
            lows=np.zeros(0, dtype=np.uint16),
            bitmaps=np.array([0], dtype=np.uint8),
            labels=np.zeros(0, dtype=np.uint8),
        ),
    ),
    m.PublishedResult(
        fingerprint="cd" * 32,
        local_centres=np.array([1, -2, 3]),
        labels=np.array([[0, 250], [1, 0]], dtype=np.uint8),
        weights=np.array([2.5, 0]),
        nodes=np.array([[1, -2], [3, 4]], dtype=np.int32),
        centres=np.array([[0.5, -0.25]]),
        sizes=np.array([2.5]),
        published_at="2026-01-31T12:00:00Z",
        signature=b"\x05" * 64,
    ),
    m.PublishedResult(  # nobody was counted, in a simulation
        fingerprint="cd" * 32,
        local_centres=np.array([1, -2, 3]),
        labels=np.array([[0, 250], [1, 0]], dtype=np.uint8),
        weights=np.array([0.0, 0.0]),
        nodes=np.zeros((0, 2), dtype=np.int32),
        centres=np.zeros((0, 2)),
        sizes=np.zeros(0),
        published_at="2026-01-31T12:00:00Z",
        signature=b"",
    ),
    m.Confirmation(key_check=b"\x02" * 32, shared_check=b""),
]


def assert_same(one: object, two: object) -> None:
    assert type(one) is type(two)
    for name, value in vars(one).items():
        other = getattr(two, name)
        if isinstance(value, np.ndarray):
            assert value.dtype == other.dtype
            np.testing.assert_array_equal(value, other)
        elif hasattr(value, "__dataclass_fields__"):
            assert_same(value, other)
        else:
            assert value == other


@pytest.mark.parametrize("message", EXAMPLES, ids=lambda message: type(message).__name__)
def test_round_trip(message: object) -> None:
    assert_same(message, decode(encode(message)))


def test_known_bytes() -> None:
    """One message byte by byte, so that the format cannot change unnoticed."""
    header = b'{"fields":{"stage":1,"values":[1]},"type":"StageRelease"}'
    expected = b"SMW1" + len(header).to_bytes(4, "little") + header
    expected += (7).to_bytes(8, "little")
    assert encode(m.StageRelease(stage=1, values=np.array([7]))) == expected


def test_arrays_are_little_endian_after_the_header() -> None:
    data = encode(m.StageRelease(stage=1, values=np.array([7, -1])))
    assert data.endswith((7).to_bytes(8, "little") + (-1).to_bytes(8, "little", signed=True))


def test_repr_shows_no_values() -> None:
    text = repr(m.KeyContribution(secret=b"\xaa" * 32)) + repr(EXAMPLES[7])
    assert "aa" not in text.replace("<KeyContribution>", "")
    assert "centres[2, 2]" in text


def framed(header: object, body: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return MAGIC + len(text).to_bytes(4, "little") + text + body


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "mark of a splitmeans message"),
        (b"XXXX1234", "mark of a splitmeans message"),
        (MAGIC, "truncated"),
        (MAGIC + b"\xff\xff\xff\xff", "truncated"),
        (framed(b"not json"), "not valid JSON"),
        (framed([1]), "must have a type and fields"),
        (framed({"type": "Nothing", "fields": {}}), "unknown"),
        (framed({"type": ["x"], "fields": {}}), "unknown"),
        (framed({"type": "StageRelease", "fields": {}}), "exactly the fields stage, values"),
        (framed({"type": "StageRelease", "fields": {"stage": "7", "values": [0]}}), "wrong type"),
        (framed({"type": "StageRelease", "fields": {"stage": True, "values": [0]}}), "wrong type"),
        (framed({"type": "StageRelease", "fields": {"stage": 1, "values": [0]}}, b"!"), "too many"),
        (
            framed({"type": "KeyContribution", "fields": {"secret": "zz"}}),
            "hexadecimal",
        ),
        (framed({"type": "StageRelease", "fields": {"stage": 1, "values": [9]}}), "needs 72 bytes"),
        (framed({"type": "StageRelease", "fields": {"stage": 1, "values": [-1]}}), "shape"),
        (framed({"type": "StageRelease", "fields": {"stage": 1, "values": [1, 1, 1]}}), "shape"),
        (
            framed(
                {
                    "type": "PartyRelease",
                    "fields": {
                        "centres": [0, 1],
                        "points": [0, 1],
                        "membership": {"type": "Ready", "fields": {"study_hash": ""}},
                    },
                }
            ),
            "must not be a Ready",
        ),
    ],
)
def test_bad_bytes_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(ProtocolError, match=message):
        decode(data)


def test_only_messages_are_encoded() -> None:
    with pytest.raises(ProtocolError, match="not a message type"):
        encode(object())


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_corrupt_bytes_never_crash(data: st.DataObject) -> None:
    """Any change of a valid message is either another valid message or a `ProtocolError`."""
    original = bytearray(encode(EXAMPLES[8]))
    position = data.draw(st.integers(0, len(original) - 1))
    original[position] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(original)))
    with contextlib.suppress(ProtocolError):
        decode(bytes(original[:cut]))
