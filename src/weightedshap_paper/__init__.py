"""The paper's experiments: its datasets, its prediction models, and all its figures and tables."""
