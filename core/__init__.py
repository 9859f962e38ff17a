"""What head embeddings are and how they are computed, kept and compared: no widgets, no command line."""

VERSION = "0.2.0"
