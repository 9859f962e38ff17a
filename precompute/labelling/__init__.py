"""Asking a language model for every document's topic: what is sent, what it costs, and where paid answers are kept."""
