"""Random faults against real drivers, and an audit that shares no code with what it judges: `make chaos`.

Nothing here imports `lakestream` or `lakestream_loadgen`: drivers are processes, and what they wrote is read by others'
software and compared with what the producer's own ledger says.
"""
