"""The operator: keeps the SparkApplications of LakeStreams as they should be, and scales their executors on lag.

The way of a change, from the API server and back to it:

    handlers (kopf) ─► adapters.cache ─► reconciler                           what is; a change wakes a loop
                                                │
    observer: manifests ─► model.Observed ──────┤                             observe
                                                ▼
    decide ─┬─ render: what each writer is to run (Plan, Goal)            decide: pure
            ├─ writers: start it, wait, drain or stop it (Outcome)
            ├─ executors, resharding ─► autoscaler: how many executors, how many shards
            ▼
       WriterDecision ─┬─► changes: what that means for its objects (Actions)
                       └─► conditions, status: what is said of it
                                                │
    adapters.applier ◄── Actions, status ───────┘                             apply: the only writes

`controller` puts it together, behind a Lease (`adapters.lease`); `watchdog` finds what kopf does not tell of, and is
what `/healthz` tells. Requests and credentials are the package `kubernetes`'s (`adapters.client`). The
autoscaler decides on what a driver says in its progress ConfigMap (`lakestream_api.report`; `autoscaler.inputs`).
Whether a writer is well is told by `writers.health`.
"""
