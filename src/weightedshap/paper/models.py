"""The prediction models of the paper's experiments."""

import lightgbm as lgb

from weightedshap.paper.datasets import Prepared

OBJECTIVES = {"regression": ("regression", "l2"), "classification": ("binary", "binary_logloss")}


def boosting(
    data: Prepared,
    *,
    seed: int,
    learning_rate: float = 0.005,
    num_leaves: int = 15,
    patience: int = 25,
    max_trees: int = 1000,
    n_threads: int = 0,
) -> lgb.Booster:
    """Boosted trees fitted to the training part, stopped by the loss on the validation part.

    `predict` gives the probability of class 1, or the value. Training ends after `patience` trees without a
    lower loss (log loss, or squared error, and no other metric), and the best number of trees is kept. The
    paper gives the rate, the leaves and the patience; `max_trees` is ours.
    """
    objective, metric = OBJECTIVES[data.task]
    parameters = {
        "objective": objective,
        "metric": metric,
        "learning_rate": learning_rate,
        "num_leaves": num_leaves,
        "seed": seed,
        "num_threads": n_threads,
        "deterministic": True,
        "force_row_wise": True,
        "verbose": -1,
    }
    train = lgb.Dataset(data.X_train, data.y_train, feature_name=list(data.feature_names))
    validation = lgb.Dataset(data.X_val, data.y_val, reference=train)
    return lgb.train(
        parameters,
        train,
        num_boost_round=max_trees,
        valid_sets=[validation],
        callbacks=[lgb.early_stopping(patience, verbose=False)],
    )
