"""Which local clustering "auto" stands for under tight accounting, from public quantities alone."""

from splitmeans import _validate


def local_choice(*, n_columns: int, n_clusters: int, mu: float, expected_users: int) -> str:
    """Return the name of the local clustering to use.

    It is "tree-lloyd" for all of them: in the shoot-out (docs/local-clustering.md, `splitmeans
    bench local`) no other private candidate that the library offers had the lower mean loss over
    the two kinds of data at any number of columns, rows and budget. The arguments stay, because
    the choice is made from them once measurements say otherwise.

    Args:
        n_columns: Columns of the party after categories are spread out, d.
        n_clusters: Number of local centres, k'.
        mu: What the local clustering may cost.
        expected_users: A public rough number of users.
    """
    _validate.at_least(1, n_columns=n_columns, n_clusters=n_clusters, expected_users=expected_users)
    _validate.positive(mu=mu)
    return "tree-lloyd"
