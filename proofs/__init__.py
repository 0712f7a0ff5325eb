"""A machine-checked proof of the decoy join, and what ties it to the code (README.md here)."""
