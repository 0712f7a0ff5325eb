"""From cell weights to a synopsis and its centres; works on released values only."""
