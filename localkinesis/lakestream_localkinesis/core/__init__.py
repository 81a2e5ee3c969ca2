"""The state of an account and the rules of Kinesis: values in, values out, time passed in."""
