"""The device pool of several machines: a Dask cluster whose workers measure as the local pool does.

``bundles`` and ``cache`` move trees of files, ``sides`` and ``bench`` measure on a worker, ``worker`` and
``tasks`` connect it to Dask; ``pool``, ``flights`` and ``link`` are the coordinator's side.
"""
