{{- define "loadgen.name" -}}
{{ .Values.nameOverride | default .Chart.Name | trunc 40 | trimAll "-_." }}
{{- end }}

{{- define "loadgen.fullname" -}}
{{- $name := printf "%s-%s" .Release.Name (include "loadgen.name" .) }}
{{- if .Values.fullnameOverride }}
{{- $name = .Values.fullnameOverride }}
{{- else if contains (include "loadgen.name" .) .Release.Name }}
{{- $name = .Release.Name }}
{{- end }}
{{- if not (regexMatch "^[a-z][-a-z0-9]*$" $name) }}
{{- fail (printf "%s begins the name of a Service, which has a letter first, then lower-case letters, digits and '-'; choose another release name, or set fullnameOverride" $name) }}
{{- end }}
{{- $name | trunc 50 | trimAll "-_." }}
{{- end }}

{{- define "loadgen.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ .Values.serviceAccount.name | default (include "loadgen.fullname" .) }}
{{- else -}}
{{ .Values.serviceAccount.name | default "default" }}
{{- end }}
{{- end }}

{{- define "loadgen.selector" -}}
app.kubernetes.io/name: {{ include "loadgen.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{/* Neither a label nor a tag may have the + of a build, as Flux writes it into the version (reconcileStrategy: Revision). */}}
{{- define "loadgen.version" -}}
{{ .Chart.AppVersion | replace "+" "_" }}
{{- end }}

{{- define "loadgen.ownLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimAll "-_." }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ include "loadgen.version" . | trunc 63 | trimAll "-_." | quote }}
app.kubernetes.io/part-of: lakestream
{{ include "loadgen.selector" . }}
{{- end }}

{{/* Of each object and pod: the chart's own, of which `commonLabels` may change some. */}}
{{- define "loadgen.labels" -}}
{{- mergeOverwrite (include "loadgen.ownLabels" . | fromYaml) (.Values.commonLabels | default dict) | toYaml }}
{{- end }}

{{/* Labels beside those of the chart, of which they may change some; (list $ "component" more), "" for no component. */}}
{{- define "loadgen.moreLabels" -}}
{{- $labels := include "loadgen.labels" (index . 0) | fromYaml }}
{{- with index . 1 }}{{ $_ := set $labels "app.kubernetes.io/component" . }}{{ end }}
{{- mergeOverwrite $labels (index . 2 | default dict) | toYaml }}
{{- end }}

{{- define "loadgen.image" -}}
{{- with .Values.image }}{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default (include "loadgen.version" $) }}{{ end }}{{ end }}
{{- end }}

{{/* Workers that are there at least: the run waits for them. */}}
{{- define "loadgen.workers" -}}
{{ .Values.workers.autoscaling.enabled | default false | ternary .Values.workers.autoscaling.minReplicas .Values.workers.replicas }}
{{- end }}

{{- define "loadgen.keepsLedger" -}}
{{- if or .Values.ledger.s3 .Values.ledger.existingClaim }}true{{ end }}
{{- end }}

{{/* What all pods have in common. None calls the API server; IRSA and Pod Identity bring tokens of their own. */}}
{{- define "loadgen.pod" -}}
serviceAccountName: {{ include "loadgen.serviceAccount" . | quote }}
automountServiceAccountToken: false
# The variables that links make would be read as options of Locust's.
enableServiceLinks: false
terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
securityContext: {{- toYaml .Values.podSecurityContext | nindent 2 }}
{{- end }}

{{/* Of a component: (list $ "component"). */}}
{{- define "loadgen.podMetadata" -}}
{{- $component := index . 1 }}
{{- with index . 0 }}
annotations:
  # A change of the load starts it anew.
  checksum/load: {{ include (print .Template.BasePath "/configmap.yaml") . | sha256sum }}
  {{- with .Values.podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
labels: {{- include "loadgen.moreLabels" (list . $component .Values.podLabels) | nindent 2 }}
{{- end }}
{{- end }}

{{/* What all containers have in common. */}}
{{- define "loadgen.container" -}}
image: {{ include "loadgen.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{- define "loadgen.dns" -}}
# DNS. Policies see the port of the pod that answers, which is 5353 on OpenShift.
- ports:
    - {protocol: UDP, port: 53}
    - {protocol: TCP, port: 53}
    - {protocol: UDP, port: 5353}
    - {protocol: TCP, port: 5353}
{{- end }}

{{/* The load, as Locust's options. The master tells its workers; they have it from the start to check it. */}}
{{- define "loadgen.environment" -}}
envFrom:
  - configMapRef: {name: {{ include "loadgen.fullname" . }}}
  {{- with .Values.envFrom }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- $env := .Values.env | default list }}
{{- if .Values.caBundle.configMap }}
{{- /* AWS_CA_BUNDLE is for Kinesis and STS; the client of S3, which ships the ledger, knows SSL_CERT_FILE alone. */}}
{{- range $name := list "SSL_CERT_FILE" "AWS_CA_BUNDLE" }}
{{- $env = prepend $env (dict "name" $name "value" (printf "/etc/lakestream/ca/%s" $.Values.caBundle.key)) }}
{{- end }}
{{- end }}
{{- with $env }}
env: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "loadgen.caMount" -}}
{{- if .Values.caBundle.configMap -}}
- {name: ca, mountPath: /etc/lakestream/ca, readOnly: true}
{{- end }}
{{- end }}

{{- define "loadgen.caVolume" -}}
{{- if .Values.caBundle.configMap -}}
- name: ca
  configMap: {name: {{ .Values.caBundle.configMap | quote }}}
{{- end }}
{{- end }}

{{- define "loadgen.scenario" -}}
{{- if .Values.scenario.configMap -}}
- --locustfile=/scenario/{{ .Values.scenario.key }}
{{- end }}
{{- end }}

{{- define "loadgen.scenarioMount" -}}
{{- if .Values.scenario.configMap -}}
- {name: scenario, mountPath: /scenario, readOnly: true}
{{- end }}
{{- end }}

{{- define "loadgen.scenarioVolume" -}}
{{- if .Values.scenario.configMap -}}
- name: scenario
  configMap: {name: {{ .Values.scenario.configMap | quote }}}
{{- end }}
{{- end }}
