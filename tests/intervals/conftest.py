"""The small result of `tests/result`, for intervals too."""

from tests.result.conftest import folder, result

__all__ = ["folder", "result"]
