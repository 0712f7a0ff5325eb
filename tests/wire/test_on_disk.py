"""Large messages on disk: the same bytes, no file that anyone could find, errors that help."""

import gc
import tempfile

import numpy as np
import pytest

from splitmeans.errors import HomeUnavailable
from splitmeans.wire.codec import encode, encoded_parts
from splitmeans.wire.messages import DecoyMessage, PartyRelease
from splitmeans.wire.on_disk import kept_on_disk


def release(n_records: int = 1000) -> PartyRelease:
    rng = np.random.default_rng(0)
    return PartyRelease(
        centres=rng.integers(-9, 9, (3, 2)),
        points=rng.integers(-9, 9, (5, 2)),
        membership=DecoyMessage(
            lengths=np.array([n_records]),
            lows=rng.integers(2**16, size=n_records).astype(np.uint16),
            bitmaps=rng.integers(256, size=n_records).astype(np.uint8),
            labels=rng.integers(256, size=n_records).astype(np.uint8),
        ),
    )


def test_a_large_message_is_the_same_on_disk_and_its_file_has_no_name(tmp_path):
    message = release()
    kept = kept_on_disk(message, tmp_path, held=100)
    assert encode(kept) == encode(message)
    assert kept.membership.lows is not message.membership.lows
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match="read-only"):
        kept.membership.lows[0] = 1
    del message
    gc.collect()
    assert len(kept.membership.lows) == 1000


def test_a_small_message_stays_where_it_is(tmp_path):
    message = release()
    assert kept_on_disk(message, tmp_path) is message


def test_parts_are_the_bytes_of_a_message():
    message = release(0)
    assert b"".join(encoded_parts(message)) == encode(message)


def test_a_full_disk_is_told_with_folder_and_remedy(tmp_path, monkeypatch):
    def full(**_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    with pytest.raises(HomeUnavailable, match=r"cannot be kept here.*No space left.*make room"):
        kept_on_disk(release(), tmp_path, held=100)
