import pytest

from splitmeans.cli.relay import parse_size
from splitmeans.errors import ParameterError


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1", 1),
        ("4096", 4096),
        ("1k", 1024),
        ("256M", 256 << 20),
        ("1.5 GiB", 3 << 29),
        (" 2 gb ", 2 << 30),
        ("1T", 1 << 40),
        ("0.1K", 102),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text, option="--max-message") == size


@pytest.mark.parametrize("text", ["", "0", "-1", "M", "1P", "1e9", "1,5G", "1 0", "inf", "\u0663M"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ParameterError, match="--max-message must be a size such as 300M"):
        parse_size(text, option="--max-message")
