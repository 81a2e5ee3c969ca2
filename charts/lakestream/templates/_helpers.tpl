{{- define "lakestream.name" -}}
{{ .Values.nameOverride | default .Chart.Name | trunc 40 | trimAll "-_." }}
{{- end }}

{{- define "lakestream.fullname" -}}
{{- $name := printf "%s-%s" .Release.Name (include "lakestream.name" .) }}
{{- if .Values.fullnameOverride }}
{{- $name = .Values.fullnameOverride }}
{{- else if contains (include "lakestream.name" .) .Release.Name }}
{{- $name = .Release.Name }}
{{- end }}
{{- if not (regexMatch "^[a-z][-a-z0-9]*$" $name) }}
{{- fail (printf "%s begins the name of a Service, which has a letter first, then lower-case letters, digits and '-'; choose another release name, or set fullnameOverride" $name) }}
{{- end }}
{{- $name | trunc 42 | trimAll "-_." }}
{{- end }}

{{- define "lakestream.operator.name" -}}
{{ include "lakestream.fullname" . }}-operator
{{- end }}

{{- define "lakestream.driver.name" -}}
{{- /* Of the whole cluster: two releases of one name that serve namespaces of their own must not share it. */}}
{{- include "lakestream.fullname" . }}{{ if .Values.operator.namespaces }}-{{ .Release.Namespace }}{{ end }}-driver
{{- end }}

{{- define "lakestream.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ .Values.serviceAccount.name | default (include "lakestream.operator.name" .) }}
{{- else -}}
{{ .Values.serviceAccount.name | default "default" }}
{{- end }}
{{- end }}

{{- define "lakestream.selector" -}}
app.kubernetes.io/name: {{ include "lakestream.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{/* Neither a label nor a tag may have the + of a build, as Flux writes it into the version (reconcileStrategy: Revision). */}}
{{- define "lakestream.version" -}}
{{ .Chart.AppVersion | replace "+" "_" }}
{{- end }}

{{- define "lakestream.ownLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimAll "-_." }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ include "lakestream.version" . | trunc 63 | trimAll "-_." | quote }}
app.kubernetes.io/part-of: lakestream
{{ include "lakestream.selector" . }}
{{- end }}

{{/* Of each object and pod: the chart's own, of which `commonLabels` may change some. */}}
{{- define "lakestream.labels" -}}
{{- mergeOverwrite (include "lakestream.ownLabels" . | fromYaml) (.Values.commonLabels | default dict) | toYaml }}
{{- end }}

{{/* Labels beside those of the chart, of which they may change some; (list $ "component" more), "" for no component. */}}
{{- define "lakestream.moreLabels" -}}
{{- $labels := include "lakestream.labels" (index . 0) | fromYaml }}
{{- with index . 1 }}{{ $_ := set $labels "app.kubernetes.io/component" . }}{{ end }}
{{- mergeOverwrite $labels (index . 2 | default dict) | toYaml }}
{{- end }}

{{- define "lakestream.operator.image" -}}
{{- with .Values.operator.image }}{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default (include "lakestream.version" $) }}{{ end }}{{ end }}
{{- end }}

{{- define "lakestream.job.image" -}}
{{- with .Values.job.image }}{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default (include "lakestream.version" $) }}{{ end }}{{ end }}
{{- end }}

{{- define "lakestream.pod" -}}
serviceAccountName: {{ include "lakestream.serviceAccount" . | quote }}
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.operator }}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- end }}
securityContext: {{- toYaml .Values.operator.podSecurityContext | nindent 2 }}
{{- end }}

{{- define "lakestream.container" -}}
image: {{ include "lakestream.operator.image" . }}
imagePullPolicy: {{ .Values.operator.image.pullPolicy }}
resources: {{- toYaml .Values.operator.resources | nindent 2 }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{/* What operator and hooks ask alike. */}}
{{- define "lakestream.egress" -}}
# DNS. Policies see the port of the pod that answers, which is 5353 on OpenShift.
- ports:
    - {protocol: UDP, port: 53}
    - {protocol: TCP, port: 53}
    - {protocol: UDP, port: 5353}
    - {protocol: TCP, port: 5353}
# A policy cannot name the API server.
- ports:
    {{- range .Values.networkPolicy.egressPorts }}
    - {protocol: TCP, port: {{ . }}}
    {{- end }}
{{- end }}

{{/* What the operator may do where LakeStreams are: in all namespaces, or in each of operator.namespaces. */}}
{{- define "lakestream.operator.rules" -}}
- apiGroups: [lakestream.dev]
  resources: [lakestreams]
  verbs: [get, list, watch, patch]
- apiGroups: [lakestream.dev]
  resources: [lakestreams/status]
  verbs: [patch]
# To own objects with blockOwnerDeletion, where the cluster asks for this right.
- apiGroups: [lakestream.dev]
  resources: [lakestreams/finalizers]
  verbs: [update]
- apiGroups: [sparkoperator.k8s.io]
  resources: [sparkapplications]
  verbs: [get, list, watch, create, delete]
- apiGroups: [""]
  resources: [configmaps, serviceaccounts]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [rbac.authorization.k8s.io]
  resources: [rolebindings]
  verbs: [get, list, watch, create, patch, delete]
# The drivers' rights are not the operator's: it may hand out this one role, and holds none of it.
- apiGroups: [rbac.authorization.k8s.io]
  resources: [clusterroles]
  resourceNames: [{{ include "lakestream.driver.name" . }}]
  verbs: [bind]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, delete]
# To say which quota forbids executors.
- apiGroups: [""]
  resources: [resourcequotas]
  verbs: [list]
- apiGroups: [""]
  resources: [events]
  verbs: [create]
{{- end }}
