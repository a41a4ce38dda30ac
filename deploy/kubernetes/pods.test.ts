/** Pods in `deploy/kubernetes` match the roles: commands, settings, ports and probes. */

import { readdirSync, readFileSync } from "node:fs";

import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { parse } from "yaml";

import { serveHealth } from "../../cli/health.ts";
import { type Role, startSettings } from "../../cli/settings.ts";
import { newSecretsText } from "../../cli/users.ts";
import { claimFreePorts } from "../../engines/free-port.ts";
import { healthRoutes } from "../../gateway/io/http/routes.ts";
import { gatewayMetrics } from "../../gateway/metrics.ts";
import { imageEnvironment } from "../image.ts";
import { configOf, DEPLOYED_ROLES, drainMsOf, portOf, secretVariables, settingsOf } from "../role-settings.ts";
import {
  amountOf,
  configMaps,
  type Container,
  documentsOf,
  environmentOf,
  FILES,
  FOLDER,
  isSelected,
  kustomization,
  manifestsOf,
  type Selector,
  workloads,
} from "./manifests.ts";

const FIELDS = { "spec.nodeName": "machine-1", "status.podIP": "10.1.2.3", "metadata.labels['topology.kubernetes.io/zone']": "" };
const SECRET = "0123456789abcdef0123456789abcdef";
/** Time after draining until the process has ended, also on a busy machine. */
const ENDING_MS_MAX = 5_000;

const deployments = workloads.filter(({ kind }) => kind === "Deployment");
const roles = deployments.map(({ metadata: { name }, spec }) => ({ role: name as Role, ...spec.template.spec }));

const settingsIn = (container: Container) => ({
  ...imageEnvironment(),
  ...environmentOf(container, { fields: FIELDS, secret: (key) => `${key} ${SECRET}` }),
});
const secretsOf = (container: Container) => (container.env ?? []).filter(({ valueFrom }) => valueFrom?.secretKeyRef !== undefined);

test("[KUB3] every file is applied, and each role has a Deployment that runs only this role", () => {
  const named = [...kustomization.resources, ...kustomization.configMapGenerator.flatMap(({ envs }) => envs)];
  expect([...named].sort()).toEqual([...FILES, "../nats"].sort());
  expect(roles.map(({ role }) => role).sort()).toEqual([...DEPLOYED_ROLES].sort());
  for (const { role, containers } of roles) {
    const [command, flag, value] = containers[0].args;
    expect([containers.length, command, flag]).toEqual([1, "start", "--roles"]);
    expect(startSettings.roles.parse(value!)).toEqual(role === "y-websocket" ? [role, "hocuspocus"] : [role]); // One port serves both.
    expect(kustomization.images.map(({ name }) => name)).toContain(containers[0].image);
  }
});

test.each(roles)(
  "[KUB4] $role gets only settings that it reads, with valid values, and can start with them",
  async ({ role, containers }) => {
    const settings = settingsOf(role);
    const given = Object.keys(environmentOf(containers[0], { fields: FIELDS, secret: (key) => `${key} ${SECRET}` }));
    expect(given.filter((name) => name.startsWith("COROOM_") && !settings.has(name))).toEqual([]);
    await expect(configOf(role, settingsIn(containers[0]))).resolves.toMatchObject({ environment: "production", production: true });
  },
);

test("[KUB5] exactly the secrets come from the Secret that the Kubernetes page creates", () => {
  const page = readFileSync("docs/operations/kubernetes.md", "utf8");
  const unused = ["COROOM_METRICS_SECRET"]; // Prometheus reads the health ports.
  const made = [...newSecretsText().matchAll(/^(\w+)=/gm)].map(([, name]) => name!).filter((name) => !unused.includes(name));
  const read = workloads.map(({ spec }) => spec.template.spec).flatMap(({ containers }) => secretsOf(containers[0]));
  const required = read.filter(({ valueFrom }) => valueFrom!.secretKeyRef!.optional !== true);
  expect([...new Set(required.map(({ valueFrom }) => valueFrom!.secretKeyRef!.key))].sort()).toEqual([...made].sort());
  expect(new Set(read.map(({ valueFrom }) => valueFrom!.secretKeyRef!.name))).toEqual(new Set(["coroom"]));
  expect(page).toContain("create secret generic coroom --from-env-file=secrets.env");
  expect(read.map(({ name }) => name).filter((name) => !secretVariables().includes(name) && !name.endsWith("_PASSWORD"))).toEqual([]);

  const inTheOpen = [
    ...Object.values(configMaps).flatMap((variables) => Object.entries(variables)),
    ...roles.flatMap(({ containers }) => (containers[0].env ?? []).map(({ name, value = "" }) => [name, value] as const)),
  ];
  // An address is a secret only when it contains a password.
  const secret = inTheOpen.filter(
    ([name, value]) => secretVariables().includes(name) && value !== "" && !/^\w+:\/\/(?:[\w-]+:\$\(\w+\)@)?[^@]+$/.test(value),
  );
  expect(secret).toEqual([]);
});

test.each(roles)("[KUB6] the ports of $role match its settings", async ({ role, containers }) => {
  const config = await configOf(role, settingsIn(containers[0]));
  const http = portOf(role, config);
  const ports = [...(http === undefined ? [] : [["http", http]]), ["health", config.healthPort]];
  expect(containers[0].ports.map(({ name, containerPort }) => [name, containerPort])).toEqual(ports);
});

test("[KUB7] probes request existing paths: the health port's, and a gateway's readiness", async () => {
  const [port] = await claimFreePorts(1, "127.0.0.1");
  const health = await serveHealth({ healthHost: "127.0.0.1", healthPort: port! }, new Registry());
  health.ready();
  try {
    const gateway = healthRoutes(new Registry(), () => undefined, { production: true, metricsSecret: SECRET }).map(({ path }) => path);
    for (const { role, containers } of roles) {
      const { startupProbe, readinessProbe, livenessProbe } = containers[0];
      const asked = [startupProbe, readinessProbe, livenessProbe].map(({ httpGet }) => httpGet!);
      expect(asked.map(({ path }) => path)).toEqual(["/readyz", "/readyz", "/healthz"]);
      expect(asked.map(({ port }) => port)).toEqual(["health", role === "gateway" ? "http" : "health", "health"]);
      for (const { path } of asked.filter(({ port }) => port === "health"))
        expect((await fetch(`http://127.0.0.1:${port}${path}`)).status).toBe(200);
    }
    expect(gateway).toContain("/readyz");
  } finally {
    await health.stop();
  }
});

test.each(roles)("[KUB8] $role gets enough time to stop", async ({ role, containers, terminationGracePeriodSeconds }) => {
  const config = await configOf(role, settingsIn(containers[0]));
  const preStopMs = (containers[0].lifecycle?.preStop.sleep.seconds ?? 0) * 1_000;
  expect(terminationGracePeriodSeconds * 1_000).toBeGreaterThanOrEqual(preStopMs + drainMsOf(role, config) + ENDING_MS_MAX);
});

test("[KUB9] a pod with connections from outside leaves its Service before it refuses connections", () => {
  const entered = manifestsOf("Ingress").flatMap(({ spec }) =>
    spec.rules.flatMap(({ http }) => http.paths.map(({ backend }) => backend.service.name)),
  );
  expect(entered).toEqual(["gateway", "y-websocket"]);
  for (const { role, containers } of roles) expect(containers[0].lifecycle !== undefined).toBe(entered.includes(role));
});

test.each(workloads.map(({ metadata: { name }, spec }) => ({ name, ...spec.template.spec })))(
  "[KUB10] $name runs without privileges, writes only to its volumes, and gets no Service variables",
  ({ securityContext, containers: [container], enableServiceLinks, automountServiceAccountToken }) => {
    expect(securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } });
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    });
    expect([enableServiceLinks, automountServiceAccountToken]).toEqual([false, false]);
  },
);

test.each(workloads.map(({ metadata: { name }, spec }) => ({ name, ...spec.template.spec.containers[0].resources })))(
  "[KUB11] $name requests memory and a share of the CPU, has a memory limit, and is never throttled",
  ({ requests, limits }) => {
    expect(Object.keys(requests)).toEqual(["cpu", "memory"]);
    expect(Object.keys(limits)).toEqual(["memory"]);
    expect(amountOf(limits["memory"]!)).toBeGreaterThan(amountOf(requests["memory"]!));
  },
);

test("[KUB12] the memory request of a room server equals its budget, and its backlog fits into it", async () => {
  const { containers } = roles.find(({ role }) => role === "room-server")!;
  const config = await configOf("room-server", settingsIn(containers[0]));
  expect(config.budgetMemoryBytes).toBe(amountOf(containers[0].resources.requests["memory"]!));
  expect(config.backlogTotalBytesMax).toBeLessThan(config.budgetMemoryBytes / 2);
});

test("[KUB13] every selector matches its workload", () => {
  for (const { metadata, spec } of workloads) {
    const { labels } = spec.template.metadata;
    const selectors = (spec.template.spec.topologySpreadConstraints ?? []).map(({ labelSelector }) => labelSelector);
    for (const selector of [spec.selector as Selector, ...selectors])
      expect([metadata.name, isSelected(labels, selector)]).toEqual([metadata.name, true]);
    const others = workloads.filter((other) => other.metadata.name !== metadata.name);
    expect(others.filter((other) => isSelected(other.spec.template.metadata.labels, spec.selector as Selector))).toEqual([]);
  }
  for (const { metadata, spec } of manifestsOf("PodDisruptionBudget", "HorizontalPodAutoscaler")) {
    const workload = workloads.find(({ metadata: { name } }) => name === metadata.name)!;
    if (spec.scaleTargetRef === undefined) expect(isSelected(workload.spec.template.metadata.labels, spec.selector as Selector)).toBe(true);
    else expect(spec.scaleTargetRef).toMatchObject({ kind: workload.kind, name: workload.metadata.name });
  }
  const several = workloads.filter(({ spec }) => spec.replicas !== 1).map(({ metadata }) => metadata.name);
  expect(
    manifestsOf("PodDisruptionBudget")
      .map(({ metadata }) => metadata.name)
      .sort(),
  ).toEqual(several.sort());
});

test("[KUB14] the metrics of autoscalers and Prometheus exist under the names that alerts use", () => {
  const health = roles.map(({ containers }) => containers[0].ports.find(({ name }) => name === "health"));
  expect(health).not.toContain(undefined);

  const [monitor] = documentsOf(`${FOLDER}/monitoring/pod-monitor.yaml`) as [
    { spec: { selector: Selector; podMetricsEndpoints: Endpoint[] } },
  ];
  for (const { spec } of deployments) expect(isSelected(spec.template.metadata.labels, monitor.spec.selector)).toBe(true);
  const [{ port, path, relabelings }] = monitor.spec.podMetricsEndpoints as [Endpoint];
  expect([port, path]).toEqual(["health", "/metrics"]);
  expect(relabelings.map(({ targetLabel }) => targetLabel)).toEqual(["job", "role", "instance"]);

  const byHand = parse(readFileSync("deploy/prometheus/kubernetes.yaml", "utf8")) as { scrape_configs: [Scrape] };
  const [{ job_name, relabel_configs }] = byHand.scrape_configs;
  const labels = relabel_configs.flatMap(({ target_label }) => (target_label === undefined ? [] : [target_label]));
  expect([job_name, ...labels]).toEqual(["coroom", "role", "instance"]);
  expect(relabel_configs[0]).toMatchObject({ action: "keep", regex: "health" });

  const autoscaler = readFileSync(`${FOLDER}/monitoring/gateway-by-connections.yaml`, "utf8");
  const [metric] = /coroom_\w+/.exec(autoscaler)!;
  expect(Object.values(gatewayMetrics(new Registry())).map((known) => (known as unknown as { name: string }).name)).toContain(metric);
});

type Endpoint = { readonly port: string; readonly path: string; readonly relabelings: readonly { readonly targetLabel: string }[] };
type Scrape = { readonly job_name: string; readonly relabel_configs: readonly { readonly target_label?: string }[] };

test("[KUB15] the other files of the folder are optional and parse", () => {
  const folder = `${FOLDER}/monitoring`;
  const { resources, patches } = documentsOf(`${folder}/kustomization.yaml`)[0] as { resources: string[]; patches: { path: string }[] };
  const files = readdirSync(folder).filter((file) => file !== "kustomization.yaml");
  expect([...resources, ...patches.map(({ path }) => path)].sort()).toEqual(files.sort());
  expect(files.flatMap((file) => documentsOf(`${folder}/${file}`)).length).toBe(files.length);
});
