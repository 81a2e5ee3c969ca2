"""Doubles, strategies and verdicts for tests of the data plane; shipped, so that other packages can use them."""
