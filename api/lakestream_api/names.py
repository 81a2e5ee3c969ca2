"""Names of what the operator makes for one writer: operator, driver and tests find the objects by these."""

from dataclasses import dataclass

GROUP = "lakestream.dev"
VERSION = "v1alpha1"
PLURAL = "lakestreams"
KIND = "LakeStream"
API_VERSION = f"{GROUP}/{VERSION}"

DOCUMENT_KEY = "lakestream.yaml"
"""Key of the document's ConfigMap."""
REPORT_KEY = "report.json"
"""Key of the progress ConfigMap: a `DriverReport`."""
CONTROL_KEY = "control.json"
"""Key of the control ConfigMap: a `Control`."""

DOCUMENT_FOLDER = "/etc/lakestream/document"
"""Where the document's ConfigMap is mounted in the driver's pod."""
DOCUMENT_PATH = f"{DOCUMENT_FOLDER}/{DOCUMENT_KEY}"

POD_VARIABLE = "LAKESTREAM_POD"
"""Environment variables of the driver: its own pod's name, uid and namespace, by the downward API."""
POD_UID_VARIABLE = "LAKESTREAM_POD_UID"
NAMESPACE_VARIABLE = "LAKESTREAM_NAMESPACE"

OWN_VARIABLES = rf"HOME|PYTHONPATH|{POD_VARIABLE}|{POD_UID_VARIABLE}|{NAMESPACE_VARIABLE}|(PY)?SPARK_.*"
"""Environment variables that are LakeStream's or Spark's own, as a pattern of whole names: with others of a person's a
driver would not find its code, or its executors. What it logs is his."""

LOG_FORMAT_VARIABLE = "LAKESTREAM_LOG_FORMAT"
"""Environment variable of drivers and executors: `json` makes lines of JSON of their logs; without it they are text."""

MANAGED_BY = "lakestream-operator"
"""Value of `app.kubernetes.io/managed-by`, and the operator's field manager."""
STREAM_LABEL = f"{GROUP}/stream"
WRITER_LABEL = f"{GROUP}/writer"
FINGERPRINT_ANNOTATION = f"{GROUP}/fingerprint"
"""Hash of all that a running driver cannot take up: another one needs a restart."""
SETTINGS_HASH_ANNOTATION = f"{GROUP}/settings-hash"
"""Of a SparkApplication: hash of what the operator's settings, and its release, make of its pods."""


@dataclass(frozen=True, slots=True)
class WriterNames:
    """Names of one writer's objects. Two writers of one namespace never share any.

    A writer's name has no `-`, so `<stream>-<writer>` can be taken apart in one way only.
    """

    stream: str
    """Name of the LakeStream."""
    writer: str

    @property
    def application(self) -> str:
        """The SparkApplication, at most 47 characters: what Spark leaves for the prefix of executor pods."""
        return f"{self.stream}-{self.writer}"

    @property
    def driver_pod(self) -> str:
        return f"{self.application}-driver"

    @property
    def executor_prefix(self) -> str:
        """Executors are called `<prefix>-exec-<number>`."""
        return self.application

    @property
    def document(self) -> str:
        """ConfigMap of the document that the driver is given."""
        return f"{self.application}-document"

    @property
    def progress(self) -> str:
        """ConfigMap that the driver writes its report into."""
        return f"{self.application}-progress"

    @property
    def control(self) -> str:
        """ConfigMap that tells the driver its executors, and when to stop."""
        return f"{self.application}-control"

    @property
    def service_account(self) -> str:
        """Service account of the driver, unless `spec.kubernetes.serviceAccount` names another."""
        return self.application

    @property
    def role_binding(self) -> str:
        """RoleBinding of the driver's service account to the chart's ClusterRole for drivers."""
        return self.application

    @property
    def labels(self) -> dict[str, str]:
        """Labels of everything that is made for this writer."""
        return {**stream_labels(self.stream), WRITER_LABEL: self.writer}


def stream_labels(stream: str) -> dict[str, str]:
    """Labels of everything that is made for a LakeStream."""
    return {
        "app.kubernetes.io/name": "lakestream",
        "app.kubernetes.io/instance": stream,
        "app.kubernetes.io/managed-by": MANAGED_BY,
        STREAM_LABEL: stream,
    }
