"""How object code of a kernel is entered: a function that takes NumPy's arrays by their address.

numba's compiled functions take an array as two owners (none here), the number of items and of bytes
in each, the address of the data, lengths and strides. Here they are read from NumPy's object, whose
layout is part of NumPy's interface for compiled modules (`PyArrayObject_fields`): after the head of
two words the address, the number of dimensions, and where lengths and strides are.
"""

from collections.abc import Sequence

ENTRY = "splitmeans_kernel"

_DATA, _LENGTHS, _STRIDES = 16, 32, 40
_BYTES = {
    **dict.fromkeys(("bool", "int8", "uint8"), 1),
    **dict.fromkeys(("int16", "uint16"), 2),
    **dict.fromkeys(("int32", "uint32", "float32"), 4),
    **dict.fromkeys(("int64", "uint64", "float64"), 8),
}
_SCALARS = {"int64": "i64", "uint64": "i64", "float64": "double", "float32": "float"}


def entry(symbol: str, types: Sequence[str]) -> str:
    """Return the function as LLVM's text; `symbol` is numba's, `types` are as in `compiled.py`."""
    takes, passes, lines = ["ptr %result", "ptr %error"], ["ptr %result", "ptr %error"], []
    for place, name in enumerate(types):
        dtype, _, form = name.partition("_")
        if not form:
            takes.append(f"{_SCALARS[name]} %x{place}")
            passes.append(f"{_SCALARS[name]} %x{place}")
            continue
        takes.append(f"ptr %x{place}")
        n, x = int(form[0]), f"%x{place}"
        for field, offset in (("data", _DATA), ("lengths", _LENGTHS), ("strides", _STRIDES)):
            lines += _load(f"{x}.{field}", x, offset, kind="ptr")
        for axis in range(n):
            lines += _load(f"{x}.n{axis}", f"{x}.lengths", 8 * axis, kind="i64")
            lines += _load(f"{x}.s{axis}", f"{x}.strides", 8 * axis, kind="i64")
        items = f"{x}.n0"
        for axis in range(1, n):
            lines.append(f"{x}.items{axis} = mul i64 {items}, {x}.n{axis}")
            items = f"{x}.items{axis}"
        passes += ["ptr null", "ptr null", f"i64 {items}", f"i64 {_BYTES[dtype]}", f"ptr {x}.data"]
        passes += [f"i64 {x}.n{axis}" for axis in range(n)]
        passes += [f"i64 {x}.s{axis}" for axis in range(n)]
    body = "\n  ".join([*lines, f'%failed = call i32 @"{symbol}"({", ".join(passes)})'])
    return f"\ndefine i32 @{ENTRY}({', '.join(takes)}) {{\n  {body}\n  ret i32 %failed\n}}\n"


def _load(name: str, base: str, offset: int, *, kind: str) -> list[str]:
    at = f"{name}.at"
    return [
        f"{at} = getelementptr i8, ptr {base}, i64 {offset}",
        f"{name} = load {kind}, ptr {at}",
    ]
