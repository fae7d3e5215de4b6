"""Floor 0: digests, time, path globs, safe files, git and subprocess plumbing. Knows nothing of rounds."""
