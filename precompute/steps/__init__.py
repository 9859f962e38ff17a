"""The steps of the job, a folder each."""
