"""Numbers and lists as Coq reads them."""

from collections.abc import Iterable, Sequence
from fractions import Fraction

from proofs.figure import Block


def comment(lines: Sequence[str]) -> str:
    """Return the lines as one comment."""
    return "(** " + "\n    ".join(lines) + " *)"


def integer_list(numbers: Iterable[int]) -> str:
    """Return a list of whole numbers, three to a line."""
    texts = [str(number) for number in numbers]
    rows = ["; ".join(texts[first : first + 3]) for first in range(0, len(texts), 3)]
    return "[\n  " + ";\n  ".join(rows) + "]%Z"


def rational(number: Fraction) -> str:
    """Return a fraction."""
    return f"({number.numerator} # {number.denominator})"


def block_text(block: Block, *, table: str | None = None) -> str:
    """Return a block, with its table by name or written out."""
    weights = table if table is not None else integer_list(block.weights)
    return f"Block (Law {block.total} {weights}) {block.times} {block.b} {block.c}"
