"""Other models on the weighted nodes of a synopsis: mixtures, medians, a tree of segments."""
