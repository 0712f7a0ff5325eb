"""Where the command line writes: `out` for data, `err` for progress and messages."""

from rich.console import Console

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)
