"""Arrow's functions on columns, loaded when the first one is called.

`pyarrow.compute` makes some three hundred functions as it is loaded, documentation included, which
takes a twentieth of a second; a fit of plain arrays calls none of them.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    import pyarrow.compute

    return getattr(pyarrow.compute, name)
