/** Connections in `deploy/kubernetes`: addresses exist, and policies allow exactly the connections that roles need. */

import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

import { gatewaySettings } from "../../gateway/config.ts";
import { configMaps, isSelected, manifestsOf, type Peer, type Rule, type Selector, workloads } from "./manifests.ts";

const services = manifestsOf("Service");
const policies = manifestsOf("NetworkPolicy");
const podsOf = (name: string) => workloads.find(({ metadata }) => metadata.name === name)!;
const labelsOf = (name: string) => podsOf(name).spec.template.metadata.labels;
const PORTS = [
  ...new Set(workloads.flatMap(({ spec }) => spec.template.spec.containers[0].ports.map(({ containerPort }) => containerPort))),
];

/** All allowed connections between pods. */
const EXPECTED_PORTS: Readonly<Record<string, Readonly<Record<string, readonly number[]>>>> = {
  "gateway": { "nats": [4222], "redis": [6379], "document-service": [8081], "leaderboard": [8082] },
  "room-server": { nats: [4222] },
  "placement": { nats: [4222] },
  "document-service": { nats: [4222] },
  "leaderboard": { nats: [4222], redis: [6379] },
  "y-websocket": { gateway: [8080] },
  "probe": { gateway: [8080] },
  "nats": { nats: [6222] },
  "redis": {},
};
/** Ports outside the namespace that pods may reach, besides DNS. */
const OUTSIDE: Readonly<Record<string, readonly number[]>> = { "gateway": [443], "document-service": [443] };
const FROM_OUTSIDE: Readonly<Record<string, Readonly<Record<string, readonly number[]>>>> = {
  "enters-coroom": { "gateway": [8080], "y-websocket": [1234] },
  "scrapes-coroom": Object.fromEntries(workloads.map(({ metadata }) => [metadata.name, [8090]])),
};

/** Whether a rule of a policy for that pod has such a peer and port. */
function lets(pod: string, way: "ingress" | "egress", port: number, isMeant: (peer: Peer) => boolean): boolean {
  const own = policies.filter(({ spec }) => isSelected(labelsOf(pod), spec.podSelector));
  return own
    .flatMap(({ spec }): readonly Rule[] => spec[way] ?? [])
    .some((rule) => (rule.from ?? rule.to ?? []).some(isMeant) && rule.ports.some((open) => open.port === port));
}

const isPod =
  (name: string) =>
  ({ podSelector, namespaceSelector }: Peer): boolean =>
    podSelector !== undefined && namespaceSelector === undefined && isSelected(labelsOf(name), podSelector);

test("[KUB16] policies allow exactly the connections between pods that roles need", () => {
  const names = workloads.map(({ metadata }) => metadata.name);
  expect(Object.keys(EXPECTED_PORTS).sort()).toEqual([...names].sort());
  for (const from of names)
    for (const to of names)
      for (const port of PORTS) {
        const isOpen = lets(from, "egress", port, isPod(to)) && lets(to, "ingress", port, isPod(from));
        expect([from, to, port, isOpen]).toEqual([from, to, port, EXPECTED_PORTS[from]![to]?.includes(port) ?? false]);
        // An egress rule without the ingress rule, or the reverse, is a mistake.
        expect(lets(from, "egress", port, isPod(to))).toBe(isOpen);
        expect(lets(to, "ingress", port, isPod(from))).toBe(isOpen);
      }
});

test("[KUB17] policies allow only the ingress and Prometheus in, and only roles that need the web out", () => {
  const [all] = policies.filter(({ metadata }) => metadata.name === "nobody");
  expect(all!.spec).toEqual({ podSelector: {}, policyTypes: ["Ingress", "Egress"] });
  for (const { metadata } of workloads) {
    for (const [namespace, ports] of Object.entries(FROM_OUTSIDE)) {
      const isOutside = ({ namespaceSelector }: Peer): boolean =>
        namespaceSelector !== undefined && isSelected({ [namespace]: "true" }, namespaceSelector);
      const open = PORTS.filter((port) => lets(metadata.name, "ingress", port, isOutside));
      expect([metadata.name, namespace, open]).toEqual([metadata.name, namespace, ports[metadata.name] ?? []]);
    }
    const isWeb = ({ ipBlock }: Peer): boolean => ipBlock !== undefined;
    expect([...PORTS, 53, 80, 443].filter((port) => lets(metadata.name, "egress", port, isWeb))).toEqual(OUTSIDE[metadata.name] ?? []);
    expect([...PORTS, 80, 443].filter((port) => lets(metadata.name, "ingress", port, isWeb))).toEqual([]);
    expect(lets(metadata.name, "egress", 53, ({ namespaceSelector }) => namespaceSelector !== undefined)).toBe(true);
  }
  for (const { spec } of policies) {
    expect(spec.policyTypes.includes("Ingress") || spec.ingress === undefined).toBe(true);
    expect(spec.policyTypes.includes("Egress") || spec.egress === undefined).toBe(true);
  }
});

test("[KUB18] each Service selects one workload and leads to one of its ports", () => {
  for (const { metadata, spec } of services) {
    const { "statefulset.kubernetes.io/pod-name": pod, ...labels } = spec.selector as Readonly<Record<string, string>>;
    const selected = workloads.filter((workload) =>
      isSelected(workload.spec.template.metadata.labels, { matchLabels: labels } as Selector),
    );
    expect(selected).toHaveLength(1);
    const { ports } = selected[0]!.spec.template.spec.containers[0];
    for (const { port, targetPort } of spec.ports)
      expect([
        metadata.name,
        port,
        ports.some(({ name, containerPort }) => (targetPort === undefined || name === targetPort) && containerPort === port),
      ]).toEqual([metadata.name, port, true]);
    if (pod !== undefined) expect(podNames(selected[0]!.metadata.name)).toContain(pod);
  }
  for (const { kind, spec } of workloads)
    if (kind === "StatefulSet") expect(services.map(({ metadata }) => metadata.name)).toContain(spec.serviceName);
});

test("[KUB19] configured addresses and the routes between nats-servers are Services with that port", () => {
  const values = [
    ...Object.values(configMaps).flatMap((variables) => Object.values(variables)),
    ...workloads.flatMap(({ spec }) => (spec.template.spec.containers[0].env ?? []).map(({ value = "" }) => value)),
    ...[...readFileSync("deploy/nats/nats.conf", "utf8").matchAll(/"(nats-route:[^"]+)"/g)].map(([, route]) => route!),
  ];
  const addresses = values
    .flatMap((value) => value.split(","))
    .map((value) => /^(?:nats|nats-route|redis|ws|http):\/\/(?:[^@/]+@)?(?<host>[a-z0-9-]+):(?<port>\d+)$/.exec(value)?.groups)
    .filter((groups) => groups !== undefined);
  expect(addresses.map((groups) => groups["host"])).toEqual(expect.arrayContaining(["nats-1", "nats-2", "nats-3", "redis", "gateway"]));
  for (const groups of addresses) {
    const { host, port } = groups as { host: string; port: string };
    const service = services.find(({ metadata }) => metadata.name === host);
    expect([host, service?.spec.ports.map((open) => String(open.port)).includes(port)]).toEqual([host, true]);
  }
});

test("[KUB20] the ingress leads to Services, and its timeout is longer than the gateway's silence limit", () => {
  const [ingress] = manifestsOf("Ingress");
  for (const { service } of ingress!.spec.rules.flatMap(({ http }) => http.paths.map(({ backend }) => backend))) {
    const { spec } = services.find(({ metadata }) => metadata.name === service.name)!;
    expect(spec.ports.map(({ name }) => name)).toContain(service.port.name);
  }
  const waits = Object.entries(ingress!.metadata.annotations!).filter(([name]) => name.includes("timeout"));
  expect(waits.length).toBeGreaterThan(3);
  for (const [name, wait] of waits) {
    const [, seconds] = /^(\d+)s?$/.exec(wait)!;
    expect([name, Number(seconds) * 1_000 > gatewaySettings.silenceMsMax.fallback]).toEqual([name, true]);
  }
});

function podNames(workload: string): readonly string[] {
  const { replicas = 0, ordinals = { start: 0 } } = podsOf(workload).spec;
  return Array.from({ length: replicas }, (_, at) => `${workload}-${ordinals.start + at}`);
}
