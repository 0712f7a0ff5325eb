"""Labels of a few bits each, packed into bytes and back; the lowest bits of a byte come first."""

import numpy as np
import numpy.typing as npt

from splitmeans.kernels.compiled import kernel

ByteArray = npt.NDArray[np.uint8]


def pack_bits(labels: ByteArray, *, width: int) -> ByteArray:
    """Return labels below 2^width, shape (n,), as ceil(n width / 8) bytes; 1 <= width <= 8."""
    packed = np.zeros(-(-labels.size * width // 8), dtype=np.uint8)
    _pack_bits(np.ascontiguousarray(labels), width, packed)
    return packed


def unpack_bits(packed: ByteArray, n_labels: int, *, width: int) -> tuple[ByteArray, bool]:
    """Return the labels, shape (n,), and whether all bits after the last one are zero."""
    labels = np.empty(n_labels, dtype=np.uint8)
    view = np.ascontiguousarray(packed).view()
    # Read-only whatever the source, so that the kernel is compiled for one type only.
    view.setflags(write=False)
    _unpack_bits(view, width, labels)
    used = n_labels * width
    clean = not used % 8 or not packed[-1] >> (used % 8)
    return labels, bool(clean)


@kernel
def _pack_bits(labels, width, packed):  # type: ignore[no-untyped-def]
    """OUT `packed`, zeros before."""
    waiting, bits, place = 0, 0, 0
    for i in range(labels.size):
        waiting |= labels[i] << bits
        bits += width
        while bits >= 8:
            packed[place] = waiting & 255
            waiting >>= 8
            bits -= 8
            place += 1
    if bits:
        packed[place] = waiting & 255


@kernel
def _unpack_bits(packed, width, labels):  # type: ignore[no-untyped-def]
    """OUT `labels`; `packed` is long enough."""
    mask = (1 << width) - 1
    waiting, bits, place = 0, 0, 0
    for i in range(labels.size):
        if bits < width:
            waiting |= packed[place] << bits
            bits += 8
            place += 1
        labels[i] = waiting & mask
        waiting >>= width
        bits -= width
