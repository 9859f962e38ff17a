"""t-SNE maps: fitting them, placing new points, and how far they can be trusted."""
