"""How many clusters each party makes when the study says "auto"; from public quantities only."""

from splitmeans.membership.methods import method_of
from splitmeans.study import Study


def default_local_clusters(study: Study, users: int) -> int:
    """Return k' for a study with about this many users; each method has a rule of its own."""
    return method_of(study).default_clusters(study, users)
