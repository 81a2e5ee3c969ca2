"""The autoscaler put through days of load in seconds: `lakestream simulate`."""
