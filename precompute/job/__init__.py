"""What steps share: fingerprints, records in the manifest, progress, child processes."""
