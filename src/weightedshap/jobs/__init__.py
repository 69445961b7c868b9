"""Explain many rows: from the command line, in files, in Arrow batches, or on a cluster."""
