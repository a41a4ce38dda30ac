/**
 * Makes the chart's templates from `deploy/kubernetes`, so that the chart has no manifest of its own to keep up to date. It
 * replaces the lines that a value changes and keeps all others, with their comments.
 */

import { readFileSync } from "node:fs";

const SOURCE = "deploy/kubernetes";

/** A manifest, the key of its values, and the condition under which it is rendered. `pods`: what restarts its pods. */
type ChartTemplate = { readonly file: string; readonly key?: string; readonly if?: string; readonly pods?: string };

const SETTINGS = ".Values.settings";
export const TEMPLATES: readonly ChartTemplate[] = [
  { file: "placement.yaml", key: "placement", pods: SETTINGS },
  { file: "room-server.yaml", key: "roomServer", pods: SETTINGS },
  { file: "document-service.yaml", key: "documentService", pods: SETTINGS },
  { file: "leaderboard.yaml", key: "leaderboard", if: ".Values.leaderboard.enabled", pods: `${SETTINGS} .Values.boards` },
  { file: "gateway.yaml", key: "gateway", pods: `${SETTINGS} .Values.edge .Values.boards` },
  { file: "y-websocket.yaml", key: "yWebsocket", if: ".Values.yWebsocket.enabled", pods: `${SETTINGS} .Values.edge` },
  { file: "probe.yaml", key: "probe", if: ".Values.probe.enabled", pods: SETTINGS },
  { file: "nats.yaml", key: "nats", if: "not .Values.nats.url", pods: '(.Files.Get "files/nats.conf") (include "coroom.natsUsers" .)' },
  { file: "redis.yaml", key: "redis", if: "not .Values.redis.url" },
  { file: "network-policies.yaml", if: ".Values.networkPolicies.enabled" },
  { file: "monitoring/pod-monitor.yaml", if: ".Values.monitoring.enabled" },
];

const PART_OF = "app.kubernetes.io/part-of: coroom";
/** Pods of nats-server are kept apart by the second of these values, and by the third as well. */
const APART: Readonly<Record<string, string>> = {
  "topology.kubernetes.io/zone": 'eq .Values.nats.apart "zones"',
  "kubernetes.io/hostname": 'ne .Values.nats.apart "nothing"',
};

export function chartTemplate({ file, key = "", if: condition, pods }: ChartTemplate): string {
  const values = `.Values.${key}`;
  const restart = pods === undefined ? "" : `      annotations: { checksum/config: {{ toJson (list ${pods}) | sha256sum }} }\n`;
  const changes: readonly (readonly [RegExp, string])[] = [
    [/^metadata:\n  name: .+$/gm, `$&\n  labels: {{- include "coroom.labels" . | nindent 4 }}`],
    [/^(      labels: \{ .+) \}$/gm, `$1, ${PART_OF} }\n${restart}`.trimEnd()],
    [/^(    - metadata: \{ name: data) \}$/gm, `$1, labels: { ${PART_OF} } }`],
    [/^  replicas: .+$/gm, key === "nats" || key === "redis" ? "$&" : `  replicas: {{ ${values}.replicas }}`],
    [/^(  (minReplicas|maxReplicas): ).+$/gm, `$1{{ ${values}.$2 }}`],
    [/^(      terminationGracePeriodSeconds: ).+$/gm, `$1{{ ${values}.terminationGracePeriodSeconds }}`],
    [/^      containers:$/gm, `      {{- include "coroom.pod" (list . ${values}) | nindent 6 }}\n$&`],
    [/^          image: coroom$/gm, '          image: {{ include "coroom.image" . }}'],
    [/^          image: \w+:.+$/gm, `          image: {{ ${values}.image }}`],
    [
      /^          image: .+$/gm,
      "$&\n          {{- with .Values.image.pullPolicy }}\n          imagePullPolicy: {{ . }}\n          {{- end }}",
    ],
    [/^          ports:$/gm, `          {{- with ${values}.env }}\n          {{- toYaml . | nindent 12 }}\n          {{- end }}\n$&`],
    [/^          resources: .+$/gm, `          resources: {{- toYaml ${values}.resources | nindent 12 }}`],
    [/secretKeyRef: \{ name: coroom,/g, "secretKeyRef: { name: {{ .Values.secret.name | quote }},"],
    [/"nats:\/\/([\w-]+):\$\(NATS_PASSWORD\)@.+?"/g, '{{ include "coroom.natsUrl" (list . "$1") }}'],
    [/"redis:\/\/([\w-]+):\$\(REDIS_PASSWORD\)@.+?"/g, '{{ include "coroom.redisUrl" (list . "$1") }}'],
    [/(name: COROOM_PROBE_GATEWAY_URLS, value: )".+"/g, "$1{{ .Values.probe.gatewayUrls | quote }}"],
    [/(name: NATS_SYNC_INTERVAL, value: )\w+/g, "$1{{ .Values.nats.syncInterval }}"],
    [/(name: GOMEMLIMIT, value: )\w+/g, "$1{{ .Values.nats.goMemoryLimit }}"],
    [/~production:/g, "~{{ .Values.settings.COROOM_ENVIRONMENT }}:"],
    [/^      spec: \{ (accessModes.+storage: )\w+(.+) \}$/gm, `      spec: { ${storageClass(values)}$1{{ ${values}.storage }}$2 }`],
    [/^    - \{ type: Resource, .+$/gm, `$&\n    {{- if .Values.monitoring.enabled }}\n${metricOfConnections()}\n    {{- end }}`],
  ];
  let text = readFileSync(`${SOURCE}/${file}`, "utf8");
  for (const [line, change] of changes) text = text.replaceAll(line, change);
  if (key === "nats") text = keptApart(text);
  if (condition !== undefined) text = `{{- if ${condition} }}\n${text}{{- end }}\n`;
  return `{{- /* Made from ${SOURCE}/${file} by: npm run helm-chart */ -}}\n${text}`;
}

function storageClass(values: string): string {
  return `{{ with ${values}.storageClass }}storageClassName: {{ quote . }}, {{ end }}`;
}

function keptApart(text: string): string {
  return text.replaceAll(/        - maxSkew: 1\n          topologyKey: (.+)\n(?:          .+\n)+/g, (constraint, key: string) => {
    return `        {{- if ${APART[key]!} }}\n${constraint}        {{- end }}\n`;
  });
}

function metricOfConnections(): string {
  return /^    - \{ type: Pods, .+$/m.exec(readFileSync(`${SOURCE}/monitoring/gateway-by-connections.yaml`, "utf8"))![0];
}
