"""k-means on points with weights, and the arithmetic around it; knows nothing of parties."""
