"""Full-text search in a run's documents."""
