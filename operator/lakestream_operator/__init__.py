"""The operator: keeps the SparkApplications of LakeStreams as they should be, and scales their executors on lag."""
