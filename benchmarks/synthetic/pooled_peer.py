"""Fit a method of dpmm to pooled codes and draw rows: a script for an environment of its own.

dpmm needs an older version of NumPy than splitmeans does, so both cannot be in one
environment. Nothing of splitmeans or of the benchmarks is imported here.

    python pooled_peer.py JOB.json

The job says `method`, `epsilon`, `delta`, `iterations`, `seed`, `sizes`, `codes` (a .npy file) and
`output` (another one, which is written). What it took is printed as JSON.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from dpmm.models import AIMGM, MSTGM


def main(job_file: str) -> None:
    """Do the job."""
    job = json.loads(Path(job_file).read_text())
    codes = np.load(job["codes"])
    names = [f"c{place}" for place in range(codes.shape[1])]
    frame = pd.DataFrame(codes, columns=names)
    domain = dict(zip(names, job["sizes"], strict=True))
    kind = {"mst": MSTGM, "aim": AIMGM}[job["method"]]
    options = {} if job["iterations"] is None else {"n_iters": job["iterations"]}
    model = kind(epsilon=job["epsilon"], delta=job["delta"], domain=domain, n_jobs=1, **options)
    model.set_random_state(np.random.RandomState(job["seed"]))
    start = time.perf_counter(), time.process_time()
    model.fit(frame)
    drawn = model.generate(n_records=len(frame))
    spent = time.perf_counter() - start[0], time.process_time() - start[1]
    np.save(job["output"], drawn[names].to_numpy().astype(np.int64))
    sys.stdout.write(json.dumps({"seconds": spent[0], "processor_seconds": spent[1]}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
