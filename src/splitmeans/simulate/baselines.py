"""The baseline: k-means on pooled rows, which no participant of a real run has; simulation only."""

import numpy as np

from splitmeans._types import FloatArray

# Restarts of scikit-learn's k-means: the yardstick should be a good optimum, not a lucky one.
_N_INIT = 10


def central_kmeans(
    scaled_rows: FloatArray, n_clusters: int, *, random_state: int | None = None
) -> FloatArray:
    """Cluster pooled rows without privacy (scikit-learn, best of ten starts).

    Rows have all parties' columns in distance units, shape (n, d). Returns centres, shape (k, d).
    """
    # Imported on first use, as everywhere: it takes a second to load.
    from sklearn.cluster import KMeans

    fitted = KMeans(n_clusters, n_init=_N_INIT, random_state=random_state).fit(scaled_rows)
    return np.asarray(fitted.cluster_centers_, dtype=np.float64)
