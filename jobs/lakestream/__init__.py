"""The data plane: exact ranges of Kinesis shards, written exactly once to Hudi tables or JSON files."""
