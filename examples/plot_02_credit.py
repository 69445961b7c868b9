"""
Categories and missing values: who gets the loan?
=================================================

A text column remains one feature, and a missing value is information, not a hidden feature:
applicants who do not state their income may be a group of their own.
"""

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier

import weightedshap as ws

rng = np.random.default_rng(1)
n = 3000
job = rng.choice(["employed", "self-employed", "student", "retired"], n, p=[0.55, 0.2, 0.1, 0.15])
applicants = pd.DataFrame(
    {
        "income": np.exp(rng.normal(10.3, 0.5, n)).round(-2) * np.where(job == "student", 0.4, 1),
        "job": pd.Categorical(job),
        "amount": np.exp(rng.normal(9.2, 0.6, n)).round(-2),
        "years at address": rng.gamma(1.5, 4, n).round(1),
        "late payments": rng.poisson(0.7, n),
        "housing": pd.Categorical(rng.choice(["own", "rent", "parents"], n, p=[0.4, 0.5, 0.1])),
    }
)
risk = 1.2 * applicants["amount"] / applicants["income"] + 0.7 * applicants["late payments"]
risk = (
    risk
    + 0.8 * (job == "self-employed") * (applicants["housing"] == "rent")
    - 0.05 * applicants["years at address"]
)
silent = rng.random(n) < 0.25 * (job == "self-employed") + 0.03
applicants.loc[silent, "income"] = np.nan  # some do not state it
late = rng.random(n) < 1 / (1 + np.exp(1.8 - risk - 0.9 * silent))

model = LGBMClassifier(n_estimators=80, num_leaves=15, n_jobs=1, verbose=-1).fit(
    applicants[:2500], late[:2500]
)
explanation = ws.Explainer(model, applicants[:2500])(applicants[2500:2700])
explanation

# %%
# The trees of a boosted classifier add up on the log-odds scale, and so do the contributions: + 0.7
# doubles the odds of paying late. The weights are chosen by how well the ranking recovers the
# *probability*; the output above names both scales.

explanation.plot.bar()

# %%
# Every level of a category has its own colour.

explanation.plot.beeswarm()

# %%
# What does it say about an applicant that the income is not stated? Missing values are drawn
# separately, in grey.

explanation.plot.scatter("income", color="job")
