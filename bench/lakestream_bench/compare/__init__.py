"""`lakestream compare`: the same events into JSON and several kinds of Hudi tables, and what each costs and answers."""
