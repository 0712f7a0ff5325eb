"""From released counts to a weighted grid of points, and from the grid to centres."""
