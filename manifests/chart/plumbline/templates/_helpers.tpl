{{- /* The name of an image: (list $ .Values.webhook.image). Without a tag it has the chart's appVersion. */ -}}
{{- define "plumbline.image" -}}
{{- $root := index . 0 -}}
{{- $image := index . 1 -}}
{{- if not $root.Values.images.registry }}
{{- fail "images.registry is empty: name the registry of Plumbline's images, such as ghcr.io/plumbline-dev/plumbline" }}
{{- end -}}
{{ trimSuffix "/" $root.Values.images.registry }}/{{ $image.repository }}:{{ $image.tag | default $root.Chart.AppVersion }}
{{- end -}}

{{- /* kube-scheduler in the cluster's version: v1.33.4-gke.100 is v1.33.4 upstream. */ -}}
{{- define "plumbline.kubeScheduler" -}}
{{- $version := regexFind "^v[0-9]+[.][0-9]+[.][0-9]+" .Capabilities.KubeVersion.Version -}}
{{- .Values.scheduler.image.repository }}:{{ .Values.scheduler.image.tag | default $version }}
{{- end -}}
