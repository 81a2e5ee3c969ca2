"""What a table is: its files and its timeline, as they are found, without Spark."""
