"""Audits: what an observer really learns from neighbouring inputs, against what is claimed."""
