"""Figures for a paper: the scripts and fonts that make files of them in a browser, and their captions."""
