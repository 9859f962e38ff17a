"""The job: corpus to embeddings, labels, analyses and maps, one step at a time."""
