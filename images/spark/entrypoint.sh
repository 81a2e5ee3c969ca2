#!/bin/bash
# What Spark's pods are started with: `driver <options of spark-submit> <program> <arguments>`, or `executor`.
# Anything else is run as it is.
set -euo pipefail

# The program itself is run, and starts the JVM as its child: so it is the program that gets SIGTERM, and whose exit
# status is the pod's. Under spark-submit that would be the JVM.
driver() {
    local submit=(--deploy-mode client --conf "spark.driver.bindAddress=$SPARK_DRIVER_BIND_ADDRESS") properties=/dev/null
    while [[ $1 == --* ]]; do
        [[ $1 == --properties-file ]] && properties=$2
        # The class is the one by which spark-submit runs Python.
        [[ $1 == --class ]] || submit+=("$1" "$2")
        shift 2
    done
    local program=${1#local://}
    shift
    # The archive of classes is for class paths that begin like this; somebody's own goes first all the same.
    grep -q '^spark\.driver\.extraClassPath' "$properties" || submit+=(--driver-class-path "$(<"$SPARK_HOME/classpath")")
    PYSPARK_SUBMIT_ARGS="$(printf '%q ' "${submit[@]}")pyspark-shell"
    export PYSPARK_SUBMIT_ARGS
    exec tini -- python3 "$program" "$@"
}

executor() {
    local options=() number name
    for ((number = 0; ; number++)); do
        name=SPARK_JAVA_OPT_$number
        [[ -v $name ]] || break
        options+=("${!name}")
    done
    # The jars first, one by one: the archive of classes is for class paths that begin with them. Somebody's own
    # (spark.executor.extraClassPath) goes before them all the same, as in a driver.
    local classes=${SPARK_CLASSPATH:+$SPARK_CLASSPATH:}
    classes="$classes$(<"$SPARK_HOME/classpath"):${SPARK_CONF_DIR:-$SPARK_HOME/conf}${HADOOP_CONF_DIR:+:$HADOOP_CONF_DIR}"
    classes="$classes${SPARK_EXTRA_CLASSPATH:+:$SPARK_EXTRA_CLASSPATH}:$PWD"
    exec tini -- "$JAVA_HOME/bin/java" "${options[@]}" \
        "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" -cp "$classes" \
        org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
        --driver-url "$SPARK_DRIVER_URL" \
        --executor-id "$SPARK_EXECUTOR_ID" \
        --cores "$SPARK_EXECUTOR_CORES" \
        --app-id "$SPARK_APPLICATION_ID" \
        --hostname "$SPARK_EXECUTOR_POD_IP" \
        --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" \
        --podName "$SPARK_EXECUTOR_POD_NAME"
}

# A user whom the cluster has chosen, as OpenShift does, has no name, and Hadoop does not start without one.
getent passwd "$UID" >/dev/null || printf 'spark:x:%s:100::/tmp:/bin/false\n' "$UID" >"$HOME/passwd"

case ${1-} in
    driver | executor) "$@" ;;
    *) exec tini -- "$@" ;;
esac
