"""Plain texts are told by the kinds of their bytes, as the slow pattern of them would."""

import re

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans.kernels.plain_text import plain_texts

_PLAIN = re.compile(r"0|[1-9][0-9]*|[a-z0-9_-]*[a-df-z][a-z0-9_-]*|[A-Z0-9_-]*[A-DF-Z][A-Z0-9_-]*")
_WORD = re.compile(r"[a-z]{1,9}|[A-Z]{1,9}")


def _slowly(text):
    return bool(_PLAIN.fullmatch(text)) and not _WORD.fullmatch(text)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("0", True),
        ("7", True),
        ("120", True),
        ("00000000000000000a3f", True),
        ("ab-1", True),
        ("AB_1", True),
        ("undefinedx", True),
        ("007", False),
        ("", False),
        ("-7", False),
        ("1e5", False),
        ("12E45", False),
        ("eee", False),
        ("unknown", False),
        ("undefined", False),
        ("aB1", False),
        ("a 1", False),
        ("été1", False),
        ("a1\n", False),
    ],
)
def test_by_hand(text, plain):
    assert plain_texts(pa.array([text, "x1"], pa.large_string())).tolist() == [plain, True]


@settings(max_examples=100, deadline=None)
@given(texts=st.lists(st.text("019eEaAzZ-_ é", max_size=11), max_size=12), skip=st.integers(0, 3))
def test_as_the_slow_pattern_does_on_slices_too(texts, skip):
    for kind in (pa.string(), pa.large_string()):
        found = plain_texts(pa.array(texts, kind).slice(skip))
        assert found.tolist() == [_slowly(text) for text in texts[skip:]]
