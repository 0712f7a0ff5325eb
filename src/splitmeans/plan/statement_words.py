"""Words of a statement: its total for those who do not read epsilon, and where noise is from."""

import math

DRAWN_NOISE = "noise comes from the operating system's secure source"
KEYED_NOISE = (
    "the parties' noise comes from the operating system's secure source; the server's own follows "
    "from its private key, which stays with the server, by ChaCha20 and HMAC-SHA256"
)

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
