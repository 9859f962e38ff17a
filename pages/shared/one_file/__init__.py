"""A run as one HTML file: its data packed in, the app's own scripts, no server and no network."""
