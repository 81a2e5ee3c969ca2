"""Questions to the tables that writers keep: as they are, as they were, and what changed.

A question is planned from the table's own log (Hudi's timeline, our manifests) before an engine sees it, so that what
cannot be answered right is refused, and says what can. The dependencies are those of `lakestream[query]`.
"""
