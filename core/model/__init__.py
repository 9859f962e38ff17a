"""From a model's name to head vectors."""
