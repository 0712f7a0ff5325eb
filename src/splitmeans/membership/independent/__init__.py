"""IND-LAP: noisy cluster sizes, parties taken as independent (paper, section 4.1)."""
