"""Keyed BLAKE3 of one chunk on Python integers, 512 bytes of it."""

MASK = 2**32 - 1
START, END, ROOT, KEYED = 1, 2, 8, 16
MOVES = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8]
COLUMNS = [(0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15)]
DIAGONALS = [(0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)]


def compressed(chain: list[int], block: bytes, *, counter: int, flags: int) -> list[int]:
    padded = block.ljust(64, b"\0")
    words = [int.from_bytes(padded[4 * i : 4 * i + 4], "little") for i in range(16)]
    init = [0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A]
    v = [*chain, *init, counter, 0, len(block), flags]
    for _ in range(7):
        pairs = zip(words[::2], words[1::2], strict=True)
        for (a, b, c, d), pair in zip(COLUMNS + DIAGONALS, pairs, strict=True):
            for word, (first, second) in zip(pair, ((16, 12), (8, 7)), strict=True):
                v[a] = (v[a] + v[b] + word) & MASK
                v[d] = turned(v[d] ^ v[a], first)
                v[c] = (v[c] + v[d]) & MASK
                v[b] = turned(v[b] ^ v[c], second)
        words = [words[move] for move in MOVES]
    return [v[i] ^ v[i + 8] for i in range(8)] + [v[i + 8] ^ chain[i] for i in range(8)]


def turned(word: int, bits: int) -> int:
    return (word >> bits | word << (32 - bits)) & MASK


def number(text: bytes, *, key: bytes) -> int:
    """The 4,096 bits of one id."""
    chain = [int.from_bytes(key[4 * i : 4 * i + 4], "little") for i in range(8)]
    start = START
    while len(text) > 64:
        chain = compressed(chain, text[:64], counter=0, flags=KEYED | start)[:8]
        text, start = text[64:], 0
    flags = KEYED | END | ROOT | start
    words = [word for at in range(8) for word in compressed(chain, text, counter=at, flags=flags)]
    return sum(word << 32 * place for place, word in enumerate(words))
