{{- define "coroom.labels" -}}
app.kubernetes.io/part-of: coroom
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "coroom.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- /* Fields of a pod. Arguments: the root and the values of the workload. */ -}}
{{- define "coroom.pod" -}}
{{- $root := index . 0 }}
{{- $own := index . 1 }}
{{- with $root.Values.image.pullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $own.scheduling }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* The first server has the user, which a client of NATS uses for all. Arguments: the root and the user. */ -}}
{{- define "coroom.natsUrl" -}}
{{- $parts := splitn "://" 2 ((index . 0).Values.nats.url | default "nats://nats-1:4222,nats://nats-2:4222,nats://nats-3:4222") }}
{{- printf "%s://%s:$(NATS_PASSWORD)@%s" $parts._0 (index . 1) $parts._1 | quote }}
{{- end }}

{{- /* Every node of a Redis Cluster has the user. Arguments: the root and the user. */ -}}
{{- define "coroom.redisUrl" -}}
{{- (index . 0).Values.redis.url | default "redis://redis:6379" | replace "://" (printf "://%s:$(REDIS_PASSWORD)@" (index . 1)) | quote }}
{{- end }}

{{- define "coroom.natsUsers" -}}
{{- $settings := .Values.settings }}
{{- if .Values.nats.users }}
{{- .Values.nats.users }}
{{- else if and (eq $settings.COROOM_ENVIRONMENT "production") (eq $settings.COROOM_LOG_PARTITIONS "3") }}
{{- .Files.Get "files/users.conf" }}
{{- else }}
{{- printf "nats.users is empty, and the chart has users only for COROOM_ENVIRONMENT=production and COROOM_LOG_PARTITIONS=3. Run: coroom nats-users --environment %s --log-partitions %s > users.conf\nThen add --set-file nats.users=users.conf" $settings.COROOM_ENVIRONMENT $settings.COROOM_LOG_PARTITIONS | fail }}
{{- end }}
{{- end }}
