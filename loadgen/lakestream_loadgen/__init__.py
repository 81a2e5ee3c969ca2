"""Load for Kinesis by Locust, a ledger of what was acknowledged, and the audit of a lake against it."""
