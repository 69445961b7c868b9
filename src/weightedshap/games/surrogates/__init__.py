"""Games learned from masked rows: boosted trees, networks, and the judges that correct them.

`data` prepares the masked rows. `tree_surrogate`, `distilled` and `neural` are recipes of learned
games; `boosting`, `imputation` and `network` contain their components. `anchored` and `correction`
build games that equal f(x) when all features are known, to judge rankings.
"""
