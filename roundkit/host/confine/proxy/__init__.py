"""The one way out of a private network namespace: an HTTP proxy in the coordinator that allows named hosts.

Nothing of it runs inside. The coordinator listens on the namespace's loopback and connects from outside.
"""
