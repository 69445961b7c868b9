"""Long runs over files: read in batches, written in parts, safe against being killed; see
`weightedshap.jobs.run`."""
