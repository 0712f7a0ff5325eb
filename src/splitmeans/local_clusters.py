"""How many clusters each party makes when the study says "auto"; from public quantities only."""

from splitmeans.membership.sketch.auto_clusters import paper_local_clusters
from splitmeans.privacy.split import paper_split
from splitmeans.study import Study

# Prototypes and `splitmeans bench accuracy`: with counts this precise a finer grid keeps gaining
# until the local centres become too noisy.
DECOY_LOCAL_CLUSTERS = 8
SKETCH_LOCAL_CLUSTERS = 6


def default_local_clusters(study: Study, users: int) -> int:
    """Return k' for a study with about this many users."""
    match study.membership:
        case "sketch-paper":
            n_parties = len(study.parties)
            shares = paper_split(study.budget, n_parties=n_parties, needs_count=True)
            return paper_local_clusters(
                noisy_count=users,
                n_clusters=study.n_clusters,
                n_parties=n_parties,
                repetitions=study.sketch.repetitions,
                epsilon=shares.membership_epsilon,
                delta=shares.membership_delta,
            )
        case "decoy":
            return max(DECOY_LOCAL_CLUSTERS, enough_clusters(study))
        case "sketch":
            return max(SKETCH_LOCAL_CLUSTERS, enough_clusters(study))
    # The paper takes k' = k for its baselines.
    return study.n_clusters


def enough_clusters(study: Study) -> int:
    """Return the smallest k' whose grid has at least n_clusters cells."""
    n_parties = len(study.parties)
    return next(k for k in range(2, study.n_clusters + 2) if k**n_parties >= study.n_clusters)
