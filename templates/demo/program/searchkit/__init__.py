"""searchkit: a small code-search engine. One module a stage: tokenize, index, rank, render."""
