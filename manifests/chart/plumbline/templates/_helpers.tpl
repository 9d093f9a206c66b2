{{- /* The name of an image: (list $ .Values.webhook.image) */ -}}
{{- define "plumbline.image" -}}
{{- $root := index . 0 -}}
{{- $image := index . 1 -}}
{{- with $root.Values.images.registry }}{{ trimSuffix "/" . }}/{{ end }}{{ $image.repository }}:{{ $image.tag }}
{{- end -}}
