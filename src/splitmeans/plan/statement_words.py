"""The total of a statement for those who do not read epsilon."""

import math

# Above this epsilon a factor says no more than "without limit".
_MOST_IN_WORDS = 10.0


def in_words(epsilon: float, delta: float) -> tuple[str, ...]:
    """Return a line that says what a bound means; none where it means next to nothing.

    Both figures are rounded up, to what is true.
    """
    if epsilon > _MOST_IN_WORDS:
        return ()
    factor = math.ceil(100 * math.exp(epsilon)) / 100
    guess = math.ceil(1000 / (1 + math.exp(-epsilon))) / 10
    return (
        f"  in words   whatever anybody concludes is at most {factor:g} times as likely with a "
        f"person in the data as without, or the other way round, but for {delta:g}; a guess of "
        f"50 % whether the person is there becomes {guess:g} % at most",
    )
