"""Ratios against a peer, measured in the same run; never asserted by a test."""
