"""LakeStream from end to end on one machine: users, Kinesis, two Spark applications, a lake, an audit."""
