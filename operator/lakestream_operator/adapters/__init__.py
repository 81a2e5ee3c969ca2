"""The API server: the only module that talks to it, and the only writes."""
