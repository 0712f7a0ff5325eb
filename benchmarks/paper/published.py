"""Numbers that the paper prints in its tables: facts, to stand beside ours."""

# Method of ours, epsilon -> (loss at S = 2, loss at S = 4, V-score at S = 2, V-score at S = 4).
MIXED_GAUSSIAN: dict[tuple[str, float], tuple[float, float, float, float]] = {
    ("split, no privacy", 1.0): (0.0763, 0.0772, 0.9781, 0.9989),
    ("split, no privacy", 4.0): (0.0763, 0.0772, 0.9781, 0.9989),
    ("central, no privacy", 1.0): (0.0763, 0.0763, 1.0, 1.0),
    ("central, no privacy", 4.0): (0.0763, 0.0763, 1.0, 1.0),
    ("DPFMPS-2PEst", 1.0): (0.7193, 1.1502, 0.9441, 0.8771),
    ("IND-LAP", 1.0): (1.1724, 1.5676, 0.8752, 0.8210),
    ("LDP-AGG-2PEst", 1.0): (1.2716, 1.9898, 0.8638, 0.6716),
    ("central DPLSF", 1.0): (0.1595, 0.1595, 0.9945, 0.9945),
    ("DPFMPS-2PEst", 4.0): (0.1525, 0.4016, 0.9850, 0.9868),
    ("IND-LAP", 4.0): (0.9640, 1.3083, 0.9106, 0.9206),
    ("LDP-AGG-2PEst", 4.0): (0.3069, 0.9945, 0.9841, 0.9440),
    ("central DPLSF", 4.0): (0.1240, 0.1240, 0.9999, 0.9999),
}

# Method, k' -> (kilobytes a party, seconds at S = 2, seconds at S = 4).
COST: dict[tuple[str, int], tuple[float, float, float]] = {
    ("DPFMPS-2PEst, M = 2048", 5): (82, 4.75, 35.40),
    ("DPFMPS-2PEst, M = 4096", 5): (164, 7.47, 39.08),
    ("IND-LAP", 5): (0.19, 0.61, 1.32),
    ("LDP-AGG-2PEst", 5): (160, 5.46, 38.48),
    ("not private", 5): (160, 0.15, 1.12),
    ("DPFMPS-2PEst, M = 2048", 8): (131, 11.68, 98.91),
    ("DPFMPS-2PEst, M = 4096", 8): (260, 11.95, 101.14),
    ("IND-LAP", 8): (0.28, 0.64, 3.83),
    ("LDP-AGG-2PEst", 8): (160, 12.13, 100.63),
    ("not private", 8): (160, 0.19, 3.26),
}

# Records that the paper says it used, and its number of columns.
DATA: dict[str, tuple[int, int]] = {
    "mixed-gaussian": (20_000, 8),
    "taxi": (100_000, 8),
    "loan": (60_000, 16),
    "letter": (20_000, 16),
}

# Where a row of `MIXED_GAUSSIAN` has a measure at two parties; four parties are next.
_PLACES = {"loss": 0, "v_measure": 2}


def value(panel: str, line: str, x: float, measure: str) -> float | None:
    """Return what the paper prints for a point of its tables, None if it prints nothing."""
    four = panel.endswith("S = 4")
    if measure in _PLACES:
        row = MIXED_GAUSSIAN.get((line, x))
        return None if row is None else row[_PLACES[measure] + four]
    clusters = int(panel.removeprefix("k' = ").partition(",")[0])
    cost = COST.get((line, clusters))
    return None if cost is None else cost[0 if measure == "bytes_per_party" else 1 + four]
