"""Methods that see all rows in one place: MST and AIM of dpmm, in an environment of their own."""

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from splitmeans._types import IntArray
from splitmeans.errors import ParameterError

PEERS = ("mst", "aim")
# The last release when this was measured.
_REQUIREMENT = "dpmm==0.1.9"
_SCRIPT = Path(__file__).with_name("pooled_peer.py")


@dataclass(frozen=True, kw_only=True)
class PeerOptions:
    """How the other library is run.

    Attributes:
        python: An interpreter that has it; None makes an environment with uv, once.
        iterations: Steps of its inference; None takes its own default.
        seconds: After so long a fit is given up.
    """

    python: Path | None = None
    iterations: int | None = None
    seconds: float = 600.0


def peer_rows(
    method: str,
    codes: IntArray,
    *,
    sizes: tuple[int, ...],
    epsilon: float,
    delta: float,
    seed: int,
    options: PeerOptions,
) -> tuple[IntArray, float] | None:
    """Return rows that a method draws and its processor time; None if it was given up.

    Args:
        method: One of `PEERS`.
        codes: The pooled rows, shape (n, columns).
        sizes: Number of codes of each column.
        epsilon: The whole budget, as splitmeans has it for all parties.
        delta: The same.
        seed: Of what is drawn.
        options: How it is run.
    """
    with tempfile.TemporaryDirectory() as folder:
        before, after, job = (Path(folder) / name for name in ("in.npy", "out.npy", "job.json"))
        np.save(before, codes)
        fields = {
            "method": method,
            "epsilon": epsilon,
            "delta": delta,
            "iterations": options.iterations,
            "seed": seed,
            "sizes": sizes,
            "codes": str(before),
            "output": str(after),
        }
        job.write_text(json.dumps(fields))
        try:
            done = subprocess.run(
                [*_interpreter(options), str(_SCRIPT), str(job)],
                capture_output=True,
                text=True,
                timeout=options.seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return None
        if done.returncode:
            last = done.stderr.strip().splitlines()[-1:] or ["no message"]
            raise ParameterError(f"{method} did not run: {last[0]}; --peers '' leaves it out")
        spent = json.loads(done.stdout.strip().splitlines()[-1])
        return np.load(after), float(spent["processor_seconds"])


def _interpreter(options: PeerOptions) -> list[str]:
    if options.python is not None:
        return [str(options.python)]
    uv = [sys.executable, "-m", "uv", "run", "--quiet", "--no-project", "--isolated"]
    return [*uv, "--python", "3.11", "--with", _REQUIREMENT, "python"]
