"""Where the command line writes: `out` for data, `err` for progress and messages."""

import sys

from rich.console import Console

# A pipe or a file has no width; tables should not be squeezed into 80 columns there. (Both sizes
# are given, because the width alone is ignored on a dumb terminal.)
_WIDE, _TALL = 160, 50

if sys.stdout.isatty():
    out = Console(highlight=False)
else:
    out = Console(highlight=False, width=_WIDE, height=_TALL)
err = Console(stderr=True, highlight=False)
