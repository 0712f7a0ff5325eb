"""The partition sketch: geometric registers per cluster, united by maxima (paper, section 4)."""
