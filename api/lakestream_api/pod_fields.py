"""What kind of value each field of a pod takes.

The API server does not look into the template of a SparkApplication. A value of another kind is no pod that it refuses
later: a program in Go can read nothing at all of a list that has it. The Spark Operator then sees no SparkApplication
of anybody any more, and does not come up again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

_QUANTITY = re.compile(r" *[+-]?(\d+(\.\d*)?|\.\d+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?\d{1,3})? *", re.ASCII)
"""Go takes blanks around it, and no line's end."""
_TOLD = """
AWSElasticBlockStoreVolumeSource fsType partition=int readOnly=bool volumeID
Affinity nodeAffinity=NodeAffinity podAffinity=PodAffinity podAntiAffinity=PodAntiAffinity
AppArmorProfile localhostProfile type
AzureDiskVolumeSource cachingMode diskName diskURI fsType kind readOnly=bool
AzureFileVolumeSource readOnly=bool secretName shareName
CSIVolumeSource driver fsType nodePublishSecretRef=LocalObjectReference readOnly=bool volumeAttributes={text}
Capabilities add=[text] drop=[text]
CephFSVolumeSource monitors=[text] path readOnly=bool secretFile secretRef=LocalObjectReference user
CinderVolumeSource fsType readOnly=bool secretRef=LocalObjectReference volumeID
ClusterTrustBundleProjection labelSelector=LabelSelector name optional=bool path signerName user=int
ConfigMapEnvSource name optional=bool
ConfigMapKeySelector key name optional=bool
ConfigMapProjection items=[KeyToPath] name optional=bool
ConfigMapVolumeSource defaultMode=int defaultUser=int items=[KeyToPath] name optional=bool
Container args=[text] command=[text] env=[EnvVar] envFrom=[EnvFromSource] image imagePullPolicy lifecycle=Lifecycle
  livenessProbe=Probe name ports=[ContainerPort] readinessProbe=Probe resizePolicy=[ContainerResizePolicy]
  resources=ResourceRequirements restartPolicy restartPolicyRules=[ContainerRestartRule]
  securityContext=SecurityContext startupProbe=Probe stdin=bool stdinOnce=bool terminationMessagePath
  terminationMessagePolicy tty=bool volumeDevices=[VolumeDevice] volumeMounts=[VolumeMount] workingDir
ContainerPort containerPort=int hostIP hostPort=int name protocol
ContainerResizePolicy resourceName restartPolicy
ContainerRestartRule action exitCodes=ContainerRestartRuleOnExitCodes
ContainerRestartRuleOnExitCodes operator values=[int]
DownwardAPIProjection items=[DownwardAPIVolumeFile]
DownwardAPIVolumeFile fieldRef=ObjectFieldSelector mode=int path resourceFieldRef=ResourceFieldSelector user=int
DownwardAPIVolumeSource defaultMode=int defaultUser=int items=[DownwardAPIVolumeFile]
EmptyDirVolumeSource medium mode=int sizeLimit=quantity
EnvFromSource configMapRef=ConfigMapEnvSource prefix secretRef=SecretEnvSource
EnvVar name value valueFrom=EnvVarSource
EnvVarSource configMapKeyRef=ConfigMapKeySelector fieldRef=ObjectFieldSelector fileKeyRef=FileKeySelector
  resourceFieldRef=ResourceFieldSelector secretKeyRef=SecretKeySelector
EphemeralContainer args=[text] command=[text] env=[EnvVar] envFrom=[EnvFromSource] image imagePullPolicy
  lifecycle=Lifecycle livenessProbe=Probe name ports=[ContainerPort] readinessProbe=Probe
  resizePolicy=[ContainerResizePolicy] resources=ResourceRequirements restartPolicy
  restartPolicyRules=[ContainerRestartRule] securityContext=SecurityContext startupProbe=Probe stdin=bool
  stdinOnce=bool targetContainerName terminationMessagePath terminationMessagePolicy tty=bool
  volumeDevices=[VolumeDevice] volumeMounts=[VolumeMount] workingDir
EphemeralVolumeSource volumeClaimTemplate=PersistentVolumeClaimTemplate
EvictionResponder name priority=int
ExecAction command=[text]
FCVolumeSource fsType lun=int readOnly=bool targetWWNs=[text] wwids=[text]
FileKeySelector key optional=bool path volumeName
FlexVolumeSource driver fsType options={text} readOnly=bool secretRef=LocalObjectReference
FlockerVolumeSource datasetName datasetUUID
GCEPersistentDiskVolumeSource fsType partition=int pdName readOnly=bool
GRPCAction mode port=int service
GitRepoVolumeSource directory repository revision
GlusterfsVolumeSource endpoints path readOnly=bool
HTTPGetAction host httpHeaders=[HTTPHeader] path port=port protocol scheme
HTTPHeader name value
HostAlias hostnames=[text] ip
HostPathVolumeSource path type
ISCSIVolumeSource chapAuthDiscovery=bool chapAuthSession=bool fsType initiatorName iqn iscsiInterface lun=int
  portals=[text] readOnly=bool secretRef=LocalObjectReference targetPortal
ImageVolumeSource pullPolicy reference
KeyToPath key mode=int path user=int
LabelSelector matchExpressions=[LabelSelectorRequirement] matchLabels={text}
LabelSelectorRequirement key operator values=[text]
Lifecycle postStart=LifecycleHandler preStop=LifecycleHandler stopSignal
LifecycleHandler exec=ExecAction httpGet=HTTPGetAction sleep=SleepAction tcpSocket=TCPSocketAction
LocalObjectReference name
ManagedFieldsEntry apiVersion fieldsType fieldsV1={any} manager operation subresource time=time
NFSVolumeSource path readOnly=bool server
NodeAffinity preferredDuringSchedulingIgnoredDuringExecution=[PreferredSchedulingTerm]
  requiredDuringSchedulingIgnoredDuringExecution=NodeSelector
NodeSelector nodeSelectorTerms=[NodeSelectorTerm]
NodeSelectorRequirement key operator values=[text]
NodeSelectorTerm matchExpressions=[NodeSelectorRequirement] matchFields=[NodeSelectorRequirement]
ObjectFieldSelector apiVersion fieldPath
ObjectMeta annotations={text} creationTimestamp=time deletionGracePeriodSeconds=long deletionTimestamp=time
  finalizers=[text] generateName generation=long labels={text} managedFields=[ManagedFieldsEntry] name namespace
  ownerReferences=[OwnerReference] resourceVersion selfLink uid
OwnerReference apiVersion blockOwnerDeletion=bool controller=bool kind name uid
PersistentVolumeClaimSpec accessModes=[text] dataSource=TypedLocalObjectReference dataSourceRef=TypedObjectReference
  resources=VolumeResourceRequirements selector=LabelSelector storageClassName volumeAttributesClassName volumeMode
  volumeName
PersistentVolumeClaimTemplate metadata=ObjectMeta spec=PersistentVolumeClaimSpec
PersistentVolumeClaimVolumeSource claimName readOnly=bool
PhotonPersistentDiskVolumeSource fsType pdID
PodAffinity preferredDuringSchedulingIgnoredDuringExecution=[WeightedPodAffinityTerm]
  requiredDuringSchedulingIgnoredDuringExecution=[PodAffinityTerm]
PodAffinityTerm labelSelector=LabelSelector matchLabelKeys=[text] mismatchLabelKeys=[text]
  namespaceSelector=LabelSelector namespaces=[text] topologyKey
PodAntiAffinity preferredDuringSchedulingIgnoredDuringExecution=[WeightedPodAffinityTerm]
  requiredDuringSchedulingIgnoredDuringExecution=[PodAffinityTerm]
PodCertificateProjection certificateChainPath credentialBundlePath keyPath keyType maxExpirationSeconds=int signerName
  user=int userAnnotations={text}
PodDNSConfig nameservers=[text] options=[PodDNSConfigOption] searches=[text]
PodDNSConfigOption name value
PodOS name
PodReadinessGate conditionType
PodResourceClaim name resourceClaimName resourceClaimTemplateName
PodSchedulingGate name
PodSchedulingGroup podGroupName
PodSecurityContext appArmorProfile=AppArmorProfile fsGroup=long fsGroupChangePolicy runAsGroup=long runAsNonRoot=bool
  runAsUser=long seLinuxChangePolicy seLinuxOptions=SELinuxOptions seccompProfile=SeccompProfile
  supplementalGroups=[long] supplementalGroupsPolicy sysctls=[Sysctl] windowsOptions=WindowsSecurityContextOptions
PodSpec activeDeadlineSeconds=long affinity=Affinity automountServiceAccountToken=bool containers=[Container]
  dnsConfig=PodDNSConfig dnsPolicy enableServiceLinks=bool ephemeralContainers=[EphemeralContainer]
  evictionResponders=[EvictionResponder] hostAliases=[HostAlias] hostIPC=bool hostNetwork=bool hostPID=bool
  hostUsers=bool hostname hostnameOverride imagePullSecrets=[LocalObjectReference] initContainers=[Container] nodeName
  nodeSelector={text} os=PodOS overhead={quantity} preemptionPolicy priority=int priorityClassName
  readinessGates=[PodReadinessGate] resourceClaims=[PodResourceClaim] resources=ResourceRequirements restartPolicy
  runtimeClassName schedulerName schedulingGates=[PodSchedulingGate] schedulingGroup=PodSchedulingGroup
  securityContext=PodSecurityContext serviceAccount serviceAccountName setHostnameAsFQDN=bool
  shareProcessNamespace=bool subdomain terminationGracePeriodSeconds=long tolerations=[Toleration]
  topologySpreadConstraints=[TopologySpreadConstraint] volumes=[Volume]
PodTemplateSpec metadata=ObjectMeta spec=PodSpec
PortworxVolumeSource fsType readOnly=bool volumeID
PreferredSchedulingTerm preference=NodeSelectorTerm weight=int
Probe exec=ExecAction failureThreshold=int grpc=GRPCAction httpGet=HTTPGetAction initialDelaySeconds=int
  periodSeconds=int successThreshold=int tcpSocket=TCPSocketAction terminationGracePeriodSeconds=long
  timeoutSeconds=int
ProjectedVolumeSource defaultMode=int defaultUser=int sources=[VolumeProjection]
QuobyteVolumeSource group readOnly=bool registry tenant user volume
RBDVolumeSource fsType image keyring monitors=[text] pool readOnly=bool secretRef=LocalObjectReference user
ResourceFieldSelector containerName divisor=quantity resource
ResourceRequirements claims=[ResourceClaim] limits={quantity} requests={quantity}
SELinuxOptions level role type user
ScaleIOVolumeSource fsType gateway protectionDomain readOnly=bool secretRef=LocalObjectReference sslEnabled=bool
  storageMode storagePool system volumeName
SeccompProfile localhostProfile type
SecretEnvSource name optional=bool
SecretKeySelector key name optional=bool
SecretProjection items=[KeyToPath] name optional=bool
SecretVolumeSource defaultMode=int defaultUser=int items=[KeyToPath] optional=bool secretName
SecurityContext allowPrivilegeEscalation=bool appArmorProfile=AppArmorProfile capabilities=Capabilities
  privileged=bool procMount readOnlyRootFilesystem=bool runAsGroup=long runAsNonRoot=bool runAsUser=long
  seLinuxOptions=SELinuxOptions seccompProfile=SeccompProfile windowsOptions=WindowsSecurityContextOptions
ServiceAccountTokenProjection audience expirationSeconds=long path user=int
SleepAction seconds=long
StorageOSVolumeSource fsType readOnly=bool secretRef=LocalObjectReference volumeName volumeNamespace
Sysctl name value
TCPSocketAction host port=port
Toleration effect key operator tolerationSeconds=long value
TopologySpreadConstraint labelSelector=LabelSelector matchLabelKeys=[text] maxSkew=int minDomains=int
  nodeAffinityPolicy nodeTaintsPolicy topologyKey whenUnsatisfiable
TypedLocalObjectReference apiGroup kind name
TypedObjectReference apiGroup kind name namespace
ResourceClaim name request
Volume awsElasticBlockStore=AWSElasticBlockStoreVolumeSource azureDisk=AzureDiskVolumeSource
  azureFile=AzureFileVolumeSource cephfs=CephFSVolumeSource cinder=CinderVolumeSource configMap=ConfigMapVolumeSource
  csi=CSIVolumeSource downwardAPI=DownwardAPIVolumeSource emptyDir=EmptyDirVolumeSource
  ephemeral=EphemeralVolumeSource fc=FCVolumeSource flexVolume=FlexVolumeSource flocker=FlockerVolumeSource
  gcePersistentDisk=GCEPersistentDiskVolumeSource gitRepo=GitRepoVolumeSource glusterfs=GlusterfsVolumeSource
  hostPath=HostPathVolumeSource image=ImageVolumeSource iscsi=ISCSIVolumeSource name nfs=NFSVolumeSource
  persistentVolumeClaim=PersistentVolumeClaimVolumeSource photonPersistentDisk=PhotonPersistentDiskVolumeSource
  portworxVolume=PortworxVolumeSource projected=ProjectedVolumeSource quobyte=QuobyteVolumeSource rbd=RBDVolumeSource
  scaleIO=ScaleIOVolumeSource secret=SecretVolumeSource storageos=StorageOSVolumeSource
  vsphereVolume=VsphereVirtualDiskVolumeSource
VolumeDevice devicePath name
VolumeMount bindMountOptions=[text] mountPath mountPropagation name readOnly=bool recursiveReadOnly subPath
  subPathExpr
VolumeProjection clusterTrustBundle=ClusterTrustBundleProjection configMap=ConfigMapProjection
  downwardAPI=DownwardAPIProjection podCertificate=PodCertificateProjection secret=SecretProjection
  serviceAccountToken=ServiceAccountTokenProjection
VolumeResourceRequirements limits={quantity} requests={quantity}
VsphereVirtualDiskVolumeSource fsType storagePolicyID storagePolicyName volumePath
WeightedPodAffinityTerm podAffinityTerm=PodAffinityTerm weight=int
WindowsSecurityContextOptions gmsaCredentialSpec gmsaCredentialSpecName hostProcess=bool runAsUserName
"""

TYPES: dict[str, dict[str, str]] = {
    name: {field: kind or "text" for field, _, kind in (one.partition("=") for one in fields)}
    for name, *fields in map(str.split, re.split(r"\n(?! )", _TOLD.strip()))
}
"""By type, as in Kubernetes's API: each field with the kind of its value, which is a text where none is given above."""


def _whole(value: Any, bits: int) -> bool:
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return whole and not isinstance(value, bool) and -(1 << bits - 1) <= value < 1 << bits - 1


def _amount(value: Any) -> bool:
    if isinstance(value, str):
        return _QUANTITY.fullmatch(value) is not None
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_KINDS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "text": (lambda value: isinstance(value, str), "must be a text; put it in quotes"),
    "bool": (lambda value: isinstance(value, bool), "must be true or false"),
    "int": (lambda value: _whole(value, 32), "must be a whole number, without quotes"),
    "long": (lambda value: _whole(value, 64), "must be a whole number, without quotes"),
    "port": (lambda value: isinstance(value, str) or _whole(value, 32), "must be the number or the name of a port"),
    "quantity": (_amount, 'must be an amount of Kubernetes, as in "500m", "2" or "10Gi"'),
    "time": (lambda value: False, "is the API server's own; remove it"),
    "any": (lambda value: True, ""),
}


def misfits(value: Any, kind: str = "PodTemplateSpec", path: str = "") -> Iterator[tuple[str, str]]:
    """Values of another kind than their fields take, and directives of a patch, which nobody follows; each by its path,
    with what to do. Null is of any kind, and what stands in fields that are not known is nobody's.

    Args:
        value: what is given.
        kind: what should be: a type, `[kind]` or `{kind}` of such, or what values are.
        path: where it stands.
    """
    if value is None:
        return
    if kind in _KINDS:
        fits, why = _KINDS[kind]
        if not fits(value):
            yield path, f"is {_shown(value)}; {why}"
    elif kind.startswith("["):
        if not isinstance(value, list):
            yield path, f"is {_shown(value)}; must be a list; begin each entry with '-'"
            return
        for index, one in enumerate(value):
            yield from misfits(one, kind[1:-1], f"{path}[{index}]")
    elif not isinstance(value, Mapping):
        yield path, f"is {_shown(value)}; must be a mapping"
    else:
        for name, one in value.items():
            where = f"{path}.{name}" if path else name
            if str(name).startswith("$"):
                yield where, "is a directive, and these are not followed; null takes a field away"
                continue
            below = kind[1:-1] if kind.startswith("{") else TYPES[kind].get(name, "any")
            yield from misfits(one, below, where)


def _shown(value: Any) -> str:
    if isinstance(value, (Mapping, list)):
        return "a mapping" if isinstance(value, Mapping) else "a list"
    return json.dumps(value)
