"""Plain labels: the non-private baseline of Ding et al. (paper, section 3.2)."""
