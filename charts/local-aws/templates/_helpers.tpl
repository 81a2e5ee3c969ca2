{{/* Neither a label nor a tag may have the + of a build, as Flux writes it into the version (reconcileStrategy: Revision). */}}
{{- define "local-aws.version" -}}
{{ .Chart.AppVersion | replace "+" "_" }}
{{- end }}

{{- define "local-aws.ownLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimAll "-_." }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ include "local-aws.version" . | trunc 63 | trimAll "-_." | quote }}
app.kubernetes.io/part-of: lakestream
{{ include "local-aws.selector" . }}
{{- end }}

{{/* Of each object and pod: the chart's own, of which `commonLabels` may change some. */}}
{{- define "local-aws.labels" -}}
{{- mergeOverwrite (include "local-aws.ownLabels" . | fromYaml) (.Values.commonLabels | default dict) | toYaml }}
{{- end }}

{{/* Labels beside those of the chart, of which they may change some; (list $ "component" more), "" for no component. */}}
{{- define "local-aws.moreLabels" -}}
{{- $labels := include "local-aws.labels" (index . 0) | fromYaml }}
{{- with index . 1 }}{{ $_ := set $labels "app.kubernetes.io/component" . }}{{ end }}
{{- mergeOverwrite $labels (index . 2 | default dict) | toYaml }}
{{- end }}

{{- define "local-aws.selector" -}}
app.kubernetes.io/name: local-aws
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "local-aws.kinesis.image" -}}
{{- with .Values.kinesis.image }}{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default (include "local-aws.version" $) }}{{ end }}{{ end }}
{{- end }}

{{- define "local-aws.s3.image" -}}
{{- with .Values.s3.image }}{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | required "s3.image.tag is required, unless there is s3.image.digest" }}{{ end }}{{ end }}
{{- end }}

{{- define "local-aws.kinesis.url" -}}
http://localkinesis.{{ .Release.Namespace }}.svc:4567
{{- end }}

{{- define "local-aws.s3.url" -}}
http://s3.{{ .Release.Namespace }}.svc:7070
{{- end }}

{{/* What all pods have in common. Neither server calls the API server. */}}
{{- define "local-aws.pod" -}}
serviceAccountName: local-aws
automountServiceAccountToken: false
enableServiceLinks: false
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

{{- define "local-aws.container" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}
