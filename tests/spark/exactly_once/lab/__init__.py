"""The parts of the exactly-once tests: a stream with a known truth, drivers to be killed, and the verdict."""
