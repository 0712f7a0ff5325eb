"""The checker's program once more, in Python: the same whole numbers as `theory/Checker.v`.

It says beforehand which number Coq will find, and with which lattice. Nothing rests on it: Coq
computes the number itself, and `make proofs` ends if the two differ.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction

SCALE = 2**64


@dataclass(frozen=True, kw_only=True)
class Block:
    """So many releases under one table; b and c are its lattice, over `SCALE`."""

    weights: tuple[int, ...]
    times: int
    b: int
    c: int

    @property
    def total(self) -> int:
        """What probabilities are fractions of."""
        return sum(self.weights)


def block_of(weights: tuple[int, ...], *, times: int, sigma: float) -> Block:
    """Return the block of a discrete Gaussian table, with the least c that the checker takes."""
    with localcontext(prec=60):
        b = int((-1 / Decimal(sigma) ** 2).exp() * SCALE)
    power, c = SCALE, 1
    for weight, following in itertools.pairwise(weights):
        c = max(c, -(-weight * power // following) if following else c)
        power = _up(power * b, SCALE)
    return Block(weights=weights, times=times, b=b, c=c)


def exp_sum(terms: int, x: Fraction) -> Fraction:
    """Return the first terms of the series of e^x: a number below it."""
    return sum((x**i / math.factorial(i) for i in range(terms + 1)), Fraction(0))


def figure(blocks: Sequence[Block], factor: Fraction) -> int:
    """Return the bound of delta at e^epsilon = `factor`, over `SCALE`."""
    bound: Callable[[int], int] = _nothing_left
    for block in reversed(blocks):
        bound = _with_block(block, bound)
    return bound(factor.numerator * SCALE // factor.denominator)


def _nothing_left(u: int) -> int:
    return max(0, SCALE - u)


def _with_block(block: Block, after: Callable[[int], int]) -> Callable[[int], int]:
    mass = _convolved(block)
    rest = _up(block.times * block.weights[-1] * SCALE, block.total)

    def bound(u: int) -> int:
        place = u * SCALE**block.times // block.c**block.times
        found = 0
        for weight in mass:
            found += weight * after(place)
            place = place * block.b // SCALE
        return _up(found, SCALE) + rest

    return bound


def _convolved(block: Block) -> list[int]:
    mass = [SCALE]
    for _ in range(block.times):
        # The last weight has no level: its loss is unbounded, and `rest` is charged for it.
        levels = len(block.weights) - 1
        product = [0] * (len(mass) + levels - 1 if levels else 0)
        for level, weight in enumerate(block.weights[:-1]):
            for place, own in enumerate(mass):
                product[level + place] += weight * own
        mass = [_up(one, block.total) for one in product]
    return mass


def _up(number: int, divisor: int) -> int:
    return number // divisor + 1
