"""One small config for each figure and table of the paper's evaluation and its appendix.

The source of the paper has no values along the axes of its plots, so grids are ours: they hold
every value that its text and tables mention. `paper` says what the text states, in our own words.
"""

import itertools

from splitmeans.bench.paper.figure import Figure, Panel, Series
from splitmeans.bench.paper.lines import (
    ALL_PANELS,
    CENTRAL,
    CENTRAL_DPLSF,
    DATA_NAMES,
    DECOY,
    DIFFPRIVLIB,
    EPSILON_GRID,
    EPSILONS,
    EXACT_WEIGHTS,
    FIVE,
    FROM_HALF,
    FROM_HALF_GRID,
    IND,
    LDP,
    PLAIN_CENTRES,
    QUICK_EPSILONS,
    SKETCH,
    SPLIT_METHODS,
    TWO_PARTY,
    VERTICAL,
    at_epsilons,
    is_same_at_two,
    panels_of,
)

LOSS = Figure(
    name="loss",
    title="Loss against epsilon",
    item="the figure of k-means loss with the final centres",
    paper=(
        "Loss of the final centres for four data sets and two or four parties. Splitting the "
        "columns costs a little without privacy too. 2PEst has the lowest loss of the private "
        "split methods nearly everywhere and is far below BasicEst at four parties (at two they "
        "are the same algorithm). LDP-AGG-2PEst comes close only at large epsilon. IND-LAP is "
        "slightly better on letter at small epsilon, which the paper puts down to nearly "
        "independent attributes. Central DPLSF is nearly always below every private split method."
    ),
    x="epsilon",
    y="loss",
    also=("loss_ratio", "n_local_clusters", "seconds"),
    x_label="epsilon",
    y_label="loss",
    xs=EPSILONS,
    quick_xs=QUICK_EPSILONS,
    panels=ALL_PANELS,
    series=(CENTRAL, VERTICAL, CENTRAL_DPLSF, DIFFPRIVLIB, *SPLIT_METHODS),
    left_out=is_same_at_two,
    settings=(
        f"{EPSILON_GRID} k = 5, M = 4096, delta = 1/n; k' by each method's own rule, 5 for the "
        "baselines and the split method without privacy. Central methods do not depend on S and "
        "are run once for both rows; BasicEst is run at S = 4 only."
    ),
)

V_SCORE = Figure(
    name="v-score",
    title="V-score against epsilon",
    item="the figure of V-scores with the final centres",
    paper=(
        "Agreement of the final clusters with the true classes (mixed Gaussian) or with central "
        "k-means without privacy (the real data). It goes with the loss: 2PEst is above the two "
        "baselines in most settings. On letter at two parties all three are lower than elsewhere, "
        "IND-LAP does well there, and 2PEst is close to the best."
    ),
    x="epsilon",
    y="v_measure",
    x_label="epsilon",
    y_label="V-score",
    xs=EPSILONS,
    quick_xs=QUICK_EPSILONS,
    panels=ALL_PANELS,
    series=(VERTICAL, CENTRAL_DPLSF, DIFFPRIVLIB, *SPLIT_METHODS),
    left_out=is_same_at_two,
    settings="The same runs as for the loss.",
)

UNEVEN = Figure(
    name="uneven",
    title="Uneven numbers of columns",
    item="the figure on unevenly split data",
    paper=(
        "Two parties at epsilon 1 with columns 3:5 and 2:6 (mixed Gaussian), 6:10 and 4:12 (loan). "
        "The loss of 2PEst hardly changes with the ratio and is below both baselines."
    ),
    x="party_sizes",
    y="loss",
    x_label="columns of the two parties",
    y_label="loss",
    panels=(
        Panel(
            name="mixed Gaussian, eps 1",
            cell={"data": "mixed-gaussian"},
            xs=((4, 4), (3, 5), (2, 6)),
        ),
        Panel(name="loan, eps 1", cell={"data": "loan"}, xs=((8, 8), (6, 10), (4, 12))),
    ),
    series=(VERTICAL, TWO_PARTY, EXACT_WEIGHTS, LDP, IND, SKETCH, DECOY),
    cell={"epsilon": 1.0, "n_parties": 2},
    per_row=2,
    settings=(
        "Columns are dealt out at random, anew for each seed. The line with exact weights (k' = 5) "
        "is ours: it shows what private local clustering alone does."
    ),
)

PARTIES = Figure(
    name="parties",
    title="Number of parties",
    item="the figure on different S on loan",
    paper=(
        "Loan (16 columns) at epsilon 1 and 2 over the number of parties. The loss grows with S, "
        "mainly because the weights become noisier; 2PEst is the lowest of the three methods."
    ),
    x="n_parties",
    y="loss",
    x_label="number of parties, S",
    y_label="loss",
    xs=(2, 4, 6, 8),
    quick_xs=(2, 4, 6),
    panels=tuple(
        Panel(name=f"loan, eps {epsilon:g}", cell={"epsilon": epsilon}) for epsilon in (1.0, 2.0)
    ),
    series=(VERTICAL, TWO_PARTY, LDP, IND, SKETCH, DECOY),
    cell={"data": "loan"},
    per_row=2,
    left_out=lambda cell: cell.method == "sketch" and cell.n_parties > 6,
    settings=(
        "S = 2, 4, 6, 8 (quick: up to 6). `sketch` is not run at S = 8, where its 6^8 cells take "
        "half a minute a run."
    ),
)

WEIGHTS = Figure(
    name="weights",
    title="Errors of the cell weights",
    item="the figures on errors of estimated intersection cardinalities (main text and appendix)",
    paper=(
        "Sum of absolute errors of all cell weights over n, with k' = k = 5. 2PEst has the lowest "
        "error in most settings, equals BasicEst at two parties and is far better at four. "
        "LDP-AGG-2PEst stays above 2PEst. The error of IND-LAP hardly falls with epsilon. On "
        "letter IND-LAP is better below epsilon 2. The main text has mixed Gaussian, the appendix "
        "taxi and letter; loan is ours."
    ),
    x="epsilon",
    y="weight_error",
    also=("weight_total", "weight_empty", "pair_error"),
    x_label="epsilon",
    y_label="weight error, L1 / n",
    xs=FROM_HALF,
    quick_xs=QUICK_EPSILONS,
    panels=ALL_PANELS,
    series=SPLIT_METHODS,
    cell=FIVE,
    left_out=is_same_at_two,
    settings=f"{FROM_HALF_GRID} Local clusters are private too, as in the paper.",
)

COMPONENTS = Figure(
    name="components",
    title="What each private part costs",
    item="the figures on the impact of private components (main text and appendix)",
    paper=(
        "Loss with both parts private, with private local clustering and exact weights, and with "
        "plain local clustering and private weights. At two parties private local clustering alone "
        "is close to the whole loss, so it is the larger part; at four parties each of the two "
        "alone has about the same effect, so the weights matter more as S grows. The main text has "
        "mixed Gaussian, the appendix taxi and letter; loan is ours."
    ),
    x="epsilon",
    y="loss",
    x_label="epsilon",
    y_label="loss",
    xs=FROM_HALF,
    quick_xs=QUICK_EPSILONS,
    panels=ALL_PANELS,
    series=(VERTICAL, TWO_PARTY, EXACT_WEIGHTS, PLAIN_CENTRES, DECOY),
    cell=FIVE,
    settings=(
        f"{FROM_HALF_GRID} k' = 5. A private part spends the share of epsilon that it has in the "
        "whole; the other part spends nothing."
    ),
)

LOCAL_CLUSTERS = Figure(
    name="local-clusters",
    title="Number of local clusters",
    item="the figures on different local k' (main text and appendix)",
    paper=(
        "Loss of 2PEst over k' at several epsilon. The best k' is close to the paper's rule. A "
        "larger epsilon favours more local clusters, more parties favour fewer."
    ),
    x="n_local_clusters",
    y="loss",
    also=("n_local_clusters",),
    x_label="local clusters, k'",
    y_label="loss",
    xs=(3, 4, 5, 6, 8, 10),
    quick_xs=(3, 5, 8),
    panels=ALL_PANELS,
    series=(
        *at_epsilons(1.0, 2.0, 4.0),
        Series(name="decoy (ours), eps 1", cell={**DECOY.cell, "epsilon": 1.0}),
    ),
    marks=at_epsilons(1.0, 2.0, 4.0),
    settings="Crosses: the k' that the paper's rule takes, from runs of their own.",
)

REPETITIONS = Figure(
    name="repetitions",
    title="Repetitions of the sketch",
    item="the figure on the repetition M (appendix)",
    paper=(
        "Weight error of 2PEst on mixed Gaussian data over M. It falls up to M = 2048; from there "
        "to 4096 nearly nothing is gained."
    ),
    x="repetitions",
    y="weight_error",
    x_label="repetitions, M",
    y_label="weight error, L1 / n",
    xs=(256, 512, 1024, 2048, 4096, 8192),
    quick_xs=(512, 1024, 2048, 4096),
    panels=panels_of("mixed-gaussian"),
    series=(
        *at_epsilons(1.0, 2.0, 4.0),
        Series(name="sketch (ours), eps 1", cell={**SKETCH.cell, "epsilon": 1.0}),
    ),
    cell=FIVE,
    per_row=2,
    settings="k' = 5; M from 256 to 8192 (quick: 512 to 4096).",
)


COST = Figure(
    name="cost",
    title="Communication and computation",
    item="the table of communication and computation cost",
    paper=(
        "Bytes that a party sends and the time in which the server gets from messages to the "
        "weighted grid, mixed Gaussian data, k' = 5 and 8, two and four parties. IND-LAP sends "
        "least. 2PEst sends 8 bytes for each of M k' registers, the label methods 8 bytes a user, "
        "so the sketch is smaller where n > M k'. The iterations of 2PEst take most of the time at "
        "four parties."
    ),
    x="epsilon",
    y="server_seconds",
    also=("bytes_per_party",),
    xs=(1.0,),
    panels=tuple(
        Panel(
            name=f"k' = {clusters}, S = {parties}",
            cell={"n_local_clusters": clusters, "n_parties": parties},
        )
        for clusters, parties in itertools.product((5, 8), (2, 4))
    ),
    series=(
        Series(name="DPFMPS-2PEst, M = 2048", cell={**TWO_PARTY.cell, "repetitions": 2048}),
        Series(name="DPFMPS-2PEst, M = 4096", cell={**TWO_PARTY.cell, "repetitions": 4096}),
        IND,
        LDP,
        Series(name="not private", cell={"method": "exact"}),
        SKETCH,
        DECOY,
    ),
    cell={"timed": True},
    picture=False,
    settings=(
        "Epsilon 1. Bytes are all that a party puts on the wire in a run, keys and plan included. "
        "Time is from decoded messages to segments (weights, grid, k-means on it), the shortest of "
        "three, one thread, while the other process runs cells."
    ),
)

MIXED_GAUSSIAN = Figure(
    name="mixed-gaussian",
    title="Mixed Gaussian in numbers",
    item="the table of detailed results on mixed Gaussian data",
    paper=(
        "Loss and V-score at epsilon 1 and 4, two and four parties, with and without privacy. Its "
        "numbers are beside ours below."
    ),
    x="epsilon",
    y="loss",
    also=("v_measure", "weight_error", "n_local_clusters"),
    xs=(1.0, 4.0),
    panels=panels_of("mixed-gaussian"),
    series=(CENTRAL, VERTICAL, CENTRAL_DPLSF, DIFFPRIVLIB, *SPLIT_METHODS),
    left_out=is_same_at_two,
    picture=False,
    settings="The same runs as for the loss figure.",
)

SILHOUETTE = Figure(
    name="silhouette",
    title="Silhouette for choosing k",
    item="the figure of silhouette scores (appendix)",
    paper=(
        "Silhouette of central k-means over k on the three real data sets. Scores are higher for "
        "small k; taxi and loan have a peak around k = 5, which is why all experiments use it."
    ),
    x="n_clusters",
    y="silhouette",
    x_label="segments, k",
    y_label="silhouette",
    xs=tuple(range(2, 11)),
    quick_xs=(2, 3, 4, 5, 6, 8),
    panels=tuple(
        Panel(name=DATA_NAMES[name], cell={"data": name})
        for name in ("taxi", "loan", "letter", "mixed-gaussian")
    ),
    series=(
        Series(name="central, no privacy", cell={"method": "silhouette"}),
        Series(name="decoy grid, eps 1 (ours)", cell={"method": "grid-silhouette"}),
    ),
    cell={"epsilon": 1.0, "n_parties": 2},
    settings=(
        "Silhouettes of 4,000 rows picked anew for each seed. The second line is what a study can "
        "see without pooling data: the simplified silhouette of the released grid of a `decoy` "
        "run, whose scale is higher by nature; it costs no privacy beyond the run. Mixed Gaussian "
        "data (five clusters by construction) is ours."
    ),
)

DATA = Figure(
    name="data",
    title="Data sets",
    item="the table of attributes, and the section on data",
    paper=(
        "Mixed Gaussian: n = 20,000, 8 columns, 5 clusters. Taxi: 100,000 trips, 8 attributes, "
        "times as seconds of the week. Loan: the first 60,000 records, 16 numeric attributes, "
        "clipped at the 95 % quantile. Letter: 20,000 records, 16 attributes. Every attribute is "
        "scaled to [-1, 1]; columns go to parties at random (mixed Gaussian, loan) or so that "
        "correlated ones are apart (taxi, letter)."
    ),
    x="epsilon",
    y="loss",
    picture=False,
    settings="Preparation as in data.md.",
)

FIGURES = {
    figure.name: figure
    for figure in (
        LOSS,
        V_SCORE,
        UNEVEN,
        PARTIES,
        WEIGHTS,
        COMPONENTS,
        LOCAL_CLUSTERS,
        REPETITIONS,
        COST,
        MIXED_GAUSSIAN,
        SILHOUETTE,
        DATA,
    )
}
