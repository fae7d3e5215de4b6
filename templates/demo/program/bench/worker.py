"""The side of the benchmark that runs the candidate."""

from roundkit.harness import worker

worker({"search": "searchkit.engine:search_all"})
