"""What LakeStream asks of Spark: its jars and session, and the way from raw records to typed rows."""
