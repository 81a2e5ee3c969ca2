"""Measurements of LakeStream beside the obvious alternatives, each in the same run."""
