"""LDP-AGG: one randomised label per user (paper, section 4.1 and appendix)."""
