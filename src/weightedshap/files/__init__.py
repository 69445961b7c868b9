"""Save and load arrays, data frames, explanations and fitted explainers, without pickle."""
