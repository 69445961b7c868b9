"""The table of experiments. To add one, write an `Experiment` and a line here."""

from __future__ import annotations

from collections.abc import Mapping

from weightedshap_paper import (
    closed_form,
    costs,
    default,
    family,
    mnist,
    stopping,
    summary,
    tabular,
)
from weightedshap_paper.experiment import Experiment

EXPERIMENTS: Mapping[str, Experiment] = {
    "two-features": closed_form.TWO,
    "hundred-features": closed_form.HUNDRED,
    "example": closed_form.EXAMPLE,
    "relative-difference": closed_form.RELATIVE,
    "datasets": summary.SUMMARY,
    "stopping": stopping.STOPPING,
    "boosting": tabular.BOOSTING,
    "fraud-authors": tabular.AUTHORS,
    "linear": tabular.LINEAR,
    "further-datasets": tabular.FURTHER,
    "exclusion": tabular.EXCLUSION,
    "masked-inclusion": tabular.MASKED,
    "network": tabular.NETWORK,
    "network-linear": tabular.NETWORK_LINEAR,
    "network-exclusion": tabular.NETWORK_EXCLUSION,
    "network-masked": tabular.NETWORK_MASKED,
    "weights": family.WEIGHTS,
    "default": default.DEFAULT,
    "default-linear": default.DEFAULT_LINEAR,
    "mnist": mnist.MNIST,
    "costs": costs.COSTS,
}
