#!/bin/bash
# The preStop hook that Spark gives executors: lets the JVM end its tasks and hand over what it has cached, and waits
# for that until the grace period is over.
for process in /proc/[0-9]*; do
    read -r name 2>/dev/null <"$process/comm" || continue
    if [[ $name == java ]]; then
        kill -s PWR "${process#/proc/}"
        tail --pid="${process#/proc/}" -f /dev/null
    fi
done
