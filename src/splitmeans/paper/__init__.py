"""The system of "Differentially Private Vertical Federated Clustering", for readers of the paper.

Li, Wang and Li (VLDB 2023). Plain functions on arrays, all parties in one process. A party's
function takes its rows, and where the paper says so the shared hash keys, and returns a message;
the server's functions take messages alone. Nothing here is part of the protocol that organisations
run: the published privacy bound of DPFMPS does not hold when parties share hash keys
(docs/concepts/published-argument.md).

In reading order:
    estimator       PaperKMeans, everything behind one class
    guarantees      which guarantee does not hold for which method
    algorithm1      Algorithm 1: the four phases
    mechanisms      the Laplace and the Gaussian mechanism on counts and sums (section 2)
    dplsf           LocCluster: noisy leaves of a hash tree (section 3.5, appendix)
    dplloyd         LocCluster: noisy Lloyd iterations (section 3.5)
    dpfm            Algorithm 2: the private sketch of one set
    dpfmps_gen      Algorithm 3: MemEnc, a party's partition sketch
    basic_est       Algorithm 4: WeightEst from all parties' sketches
    two_party_est   Algorithm 5: WeightEst from pairs of parties
    local_k         the number of local clusters (section 5.2)
    ind_lap         baseline 1: independent parties (section 4.1)
    ldp_agg         baseline 2: randomised labels (section 4.1, appendix)
    baselines       without privacy or without a split (sections 3.2 and 6)
    datasets        the data of the evaluation (section 6)
    metrics         loss, V-score and errors of weights (section 6)
"""

from splitmeans.paper.algorithm1 import Budget, Settings, vertical_clustering
from splitmeans.paper.datasets import mixed_gaussian
from splitmeans.paper.estimator import PaperKMeans

__all__ = ["Budget", "PaperKMeans", "Settings", "mixed_gaussian", "vertical_clustering"]
