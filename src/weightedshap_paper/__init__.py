"""The paper's experiments: its datasets, its prediction models, and one function per figure and
table."""
