"""The step ``aspects``: what each head carries: topic, genre, length, any label axis."""
