/** The chart as Helm renders it: the objects of the kustomization, the effect of each value, and what is refused. */

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";

import { ProgramError } from "../../engines/run-program.ts";
import { complaintsAbout, type KubernetesDocument } from "../kubernetes/schema.ts";
import { CHART, chartWith, type ChartObjects, type ChartValues, helm, kustomized } from "./chart.ts";

type JsonObject = { [name: string]: JsonObject };
const DEFAULTS = parse(readFileSync(`${CHART}/values.yaml`, "utf8")) as ChartValues;
const WORKLOADS: Readonly<Record<string, string>> = {
  gateway: "Deployment gateway",
  placement: "Deployment placement",
  roomServer: "Deployment room-server",
  documentService: "Deployment document-service",
  leaderboard: "Deployment leaderboard",
  yWebsocket: "Deployment y-websocket",
  probe: "Deployment probe",
  nats: "StatefulSet nats",
  redis: "StatefulSet redis",
};
const SECRETS = [...readFileSync(`${CHART}/values.schema.json`, "utf8").matchAll(/"(\w+_(?:SECRET|PASSWORD))"/g)].map(([, name]) => name!);

/** Another value for each path. Values of other paths follow from their type. */
const OTHERS: Readonly<Record<string, unknown>> = {
  "image.pullPolicy": "Always",
  "image.pullSecrets": [{ name: "registry" }],
  "secret.values": Object.fromEntries(SECRETS.map((name) => [name, `${name} of the test`])),
  "nats.url": "tls://nats.example:4222,tls://other.example:4222",
  "nats.syncInterval": "120s",
  "nats.apart": "machines",
  "nats.goMemoryLimit": "900MiB",
  "redis.url": "rediss://redis.example:6379,rediss://other.example:6379",
  "ingress.annotations": { "haproxy.org/timeout-tunnel": "90s" },
  "networkPolicies.extraEgress": [{ to: [{ ipBlock: { cidr: "10.0.0.5/32" } }], ports: [{ port: 5432 }] }],
  "env": [{ name: "COROOM_TEST", value: "1" }],
  "scheduling": { nodeSelector: { disk: "local" }, tolerations: [{ key: "coroom", operator: "Exists" }], priorityClassName: "high" },
  "resources": { requests: { cpu: "2", memory: "5Gi" }, limits: { memory: "6Gi" } },
  "storage": "7Gi",
};

/** The paths of values: those with a value of their own above, and others without fields. */
function pathsOf(values: ChartValues, above = ""): readonly string[] {
  return Object.entries(values).flatMap(([name, value]) => {
    const path = `${above}${name}`;
    const isWhole = OTHERS[path] !== undefined || OTHERS[name] !== undefined || typeof value !== "object" || value === null;
    return isWhole ? [path] : pathsOf(value as ChartValues, `${path}.`);
  });
}

function otherValue(path: string): unknown {
  const value = path.split(".").reduce<unknown>((at, name) => (at as ChartValues)[name], DEFAULTS);
  const given = OTHERS[path] ?? OTHERS[path.split(".").at(-1)!];
  if (given !== undefined) return given;
  if (typeof value === "boolean") return !value;
  return typeof value === "number" ? value + 1 : "other";
}

/** A copy of the values with another one at this path. */
function changed(values: ChartValues, path: string, value: unknown): ChartValues {
  const [name, ...below] = path.split(".");
  const inner = (values[name!] ?? {}) as ChartValues;
  return { ...values, [name!]: below.length === 0 ? value : changed(inner, below.join("."), value) };
}

const PATHS = pathsOf(DEFAULTS);
const OWN_USERS: ChartValues = { nats: { users: "authorization {}" } };
const everything = PATHS.filter((path) => !/\.(?:enabled|url)$/.test(path)).reduce(
  (values, path) => changed(values, path, otherValue(path)),
  changed(OWN_USERS, "monitoring.enabled", true),
);

const OWN_SERVERS = { nats: { url: OTHERS["nats.url"] }, redis: { url: OTHERS["redis.url"] } };

const podOf = (objects: ChartObjects, name: string) => (objects[name] as unknown as { spec: { template: JsonObject } }).spec.template;
const variablesOf = (objects: ChartObjects, name: string): Readonly<Record<string, string>> => {
  const [container] = podOf(objects, name)["spec"]!["containers"] as unknown as [{ env: readonly { name: string; value: string }[] }];
  return Object.fromEntries(container.env.map((variable) => [variable.name, variable.value]));
};

/** Without what only one of both adds: labels and checksums of Helm; namespaces and hashes in names of Kustomize. */
function comparable(objects: ChartObjects): ChartObjects {
  const bare = Object.values(objects)
    .filter(({ kind }) => kind !== "Namespace")
    .map((object) => {
      const text = JSON.stringify(object, (name, value: unknown) =>
        ["namespace", "app.kubernetes.io/managed-by", "helm.sh/chart", "checksum/config"].includes(name) ? undefined : value,
      );
      return JSON.parse(
        text.replaceAll(/"name":"(\w+)-[a-z0-9]{10}"/g, '"name":"$1"').replaceAll(',"annotations":{}', ""),
      ) as KubernetesDocument;
    });
  return Object.fromEntries(bare.map((object) => [`${object.kind} ${object.metadata.name}`, object]));
}

async function refusalOf(values: ChartValues): Promise<string> {
  const refused = await chartWith(values).catch((error: unknown) => error);
  if (refused instanceof ProgramError) return refused.errorOutput;
  throw new Error("Helm accepts the values", { cause: refused });
}

test("[HELM4] the chart renders the objects of the kustomization", async () => {
  const objects = comparable(await chartWith());
  expect(Object.keys(objects).length).toBeGreaterThan(40);
  expect(objects).toEqual(comparable(await kustomized()));
});

test("[HELM5] with monitoring it renders those of the kustomization with its component", async () => {
  const objects = comparable(await chartWith({ monitoring: { enabled: true } }));
  const expected = comparable(await kustomized(["monitoring"]));
  // Kustomize gives the label to no object of a component.
  const monitor = expected["PodMonitor coroom"]!;
  const labels = { "app.kubernetes.io/part-of": "coroom" };
  expect(objects).toEqual({ ...expected, "PodMonitor coroom": { ...monitor, metadata: { ...monitor.metadata, labels } } });
});

test("[HELM6] each value has an effect, and one of a workload on this workload only", async () => {
  const before = await chartWith(OWN_USERS);
  const without: string[] = [];
  for (const path of PATHS) {
    const after = await chartWith(changed(OWN_USERS, path, otherValue(path)));
    const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
    const differing = names.filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]));
    if (differing.length === 0) without.push(path);
    const workload = WORKLOADS[path.split(".")[0]!];
    const reachesOthers = /\.(?:url|enabled|users|minReplicas|maxReplicas)$/.test(path);
    if (workload !== undefined && !reachesOthers) expect([path, differing]).toEqual([path, [workload]]);
  }
  expect(without).toEqual([]);
});

test("[HELM7] every object matches the Kubernetes API: with the defaults, with all values changed, and with all parts off", async () => {
  const off = PATHS.filter((path) => path.endsWith(".enabled")).reduce((values, path) => changed(values, path, false), {} as ChartValues);
  for (const values of [{}, everything, off, { ...everything, ...off }, OWN_SERVERS]) {
    const objects = Object.values(await chartWith(values)).filter(({ kind }) => kind !== "PodMonitor"); // Not of Kubernetes; HELM5 compares it.
    expect(objects.length).toBeGreaterThan(10);
    expect(complaintsAbout(objects)).toEqual([]);
  }
});

test("[HELM8] values reach their fields", async () => {
  const objects = await chartWith(everything);
  const pod = podOf(objects, "Deployment room-server")["spec"]!;
  expect(pod).toMatchObject({
    imagePullSecrets: [{ name: "registry" }],
    nodeSelector: { disk: "local" },
    terminationGracePeriodSeconds: 36,
    containers: [{ image: "other:other", imagePullPolicy: "Always", resources: OTHERS["resources"] }],
  });
  const variables = variablesOf(await chartWith(OWN_SERVERS), "Deployment gateway");
  expect(variables["COROOM_NATS_URL"]).toBe("tls://gateway:$(NATS_PASSWORD)@nats.example:4222,tls://other.example:4222");
  const redis = "rediss://gateway:$(REDIS_PASSWORD)@";
  expect(variables["COROOM_REDIS_URL"]).toBe(`${redis}redis.example:6379,${redis}other.example:6379`);
  expect(variablesOf(objects, "Deployment gateway")).toMatchObject({ COROOM_TEST: "1" });
  expect(objects["Secret other"]).toMatchObject({ stringData: OTHERS["secret.values"] });
  expect(objects["Ingress coroom"]).toMatchObject({
    spec: { ingressClassName: "other", tls: [{ secretName: "other" }], rules: [{ host: "other" }, { host: "other" }] },
  });
  expect(objects["StatefulSet nats"]).toMatchObject({ spec: { volumeClaimTemplates: [{ spec: { storageClassName: "other" } }] } });
  expect(objects["ConfigMap nats"]).toMatchObject({ data: { "users.conf": "other\n" } });
});

test("[HELM16] names that look like numbers or booleans stay names", async () => {
  const objects = await chartWith({
    secret: { name: "123", values: OTHERS["secret.values"] },
    nats: { storageClass: "1" },
    redis: { storageClass: "on" },
    ingress: { className: "true", tlsSecret: "1e3" },
  });
  expect(complaintsAbout(Object.values(objects))).toEqual([]);
});

test("[HELM9] parts that are off have no objects, and a changed setting restarts exactly the pods that read it", async () => {
  const off = { enabled: false };
  const names = Object.keys(
    await chartWith({ ...OWN_SERVERS, yWebsocket: off, probe: off, leaderboard: off, ingress: off, networkPolicies: off }),
  );
  expect(names.filter((name) => /nats|redis|y-websocket|probe|leaderboard|Ingress|NetworkPolicy/.test(name))).toEqual([]);

  const before = await chartWith();
  const restarted = async (values: ChartValues): Promise<readonly string[]> => {
    const after = await chartWith(values);
    return Object.values(WORKLOADS).filter((name) => JSON.stringify(podOf(after, name)) !== JSON.stringify(podOf(before, name)));
  };
  const roles = Object.values(WORKLOADS).filter((name) => name.startsWith("Deployment"));
  expect(await restarted({ settings: { COROOM_LOG_LEVEL: "debug" } })).toEqual(roles);
  expect(await restarted({ edge: { COROOM_ALLOWED_ORIGINS: "https://other.example" } })).toEqual([
    "Deployment gateway",
    "Deployment y-websocket",
  ]);
  expect(await restarted({ boards: { COROOM_BOARD_SESSION_POINTS: "2" } })).toEqual(["Deployment gateway", "Deployment leaderboard"]);
  expect(await restarted({ nats: { users: "other" } })).toEqual(["StatefulSet nats"]);
});

test("[HELM10] misspelt values, and parts that are null, are refused by name", async () => {
  const parts = ["top", ...Object.keys(DEFAULTS), "gateway.resources", "gateway.scheduling"];
  const nameIn = (part: string): string => `misspelt-in-${part.replace(".", "-")}`;
  const pathIn = (part: string): string => (part === "top" ? nameIn(part) : `${part}.${nameIn(part)}`);
  const refused = await refusalOf(parts.reduce((values, part) => changed(values, pathIn(part), "value"), {} as ChartValues));
  expect(parts.filter((part) => !refused.includes(`'${nameIn(part)}'`))).toEqual([]);
  const absent = await refusalOf(Object.fromEntries(Object.keys(DEFAULTS).map((part) => [part, null])));
  expect(Object.keys(DEFAULTS).filter((part) => !absent.includes("missing propert") || !absent.includes(`'${part}'`))).toEqual([]);
  expect(await refusalOf({ settings: { COROOM_LOG_PARTITIONS: 3 } })).toContain("COROOM_LOG_PARTITIONS");
  expect(await refusalOf({ nats: { url: "nats://user:password@nats.example:4222" } })).toContain("url");
});

test("[HELM15] a setting that the chart sets itself, and that would have no effect, is refused by name", async () => {
  const set = new Set([...JSON.stringify(await chartWith()).matchAll(/"name":"(COROOM_\w+)","value/g)].map(([, name]) => name!));
  expect(set).toContain("COROOM_NATS_URL");
  for (const part of ["settings", "edge", "boards"])
    expect(await refusalOf({ [part]: { COROOM_NATS_URL: "nats://nats.example:4222" } })).toContain("COROOM_NATS_URL");
  const refused = await refusalOf({ settings: Object.fromEntries([...set].map((name) => [name, "other"])) });
  expect([...set].filter((name) => !refused.includes(name))).toEqual([]);
});

test("[HELM11] the secrets that pods read are required when the chart creates the Secret", async () => {
  const read = [...JSON.stringify(await chartWith()).matchAll(/"secretKeyRef":\{"name":"coroom","key":"(\w+)"\}/g)].map(([, key]) => key!);
  expect(SECRETS.toSorted()).toEqual([...new Set(read)].toSorted());
  for (const name of SECRETS) {
    const { [name]: _, ...others } = OTHERS["secret.values"] as ChartValues;
    expect(await refusalOf({ secret: { values: others } })).toContain(name);
  }
});

test("[HELM12] the bundled nats-servers need users for another environment or number of partitions", async () => {
  for (const settings of [{ COROOM_ENVIRONMENT: "staging" }, { COROOM_LOG_PARTITIONS: "6" }]) {
    expect(await refusalOf({ settings })).toMatch(
      /coroom nats-users --environment (?:staging|production) --log-partitions [36] > users\.conf/,
    );
    const { "ConfigMap nats": users } = await chartWith({ settings, ...OWN_USERS });
    expect(users).toMatchObject({ data: { "users.conf": "authorization {}\n" } });
  }
  const staging = await chartWith({ settings: { COROOM_ENVIRONMENT: "staging" }, ...OWN_USERS });
  const { args } = (podOf(staging, "StatefulSet redis")["spec"]!["containers"] as unknown as [{ args: readonly string[] }])[0];
  expect(args.join(" ")).toContain("~staging:sanctions");
  expect(args.join(" ")).not.toContain("production");
});

test("[HELM13] the packed chart renders the same, and Helm's linter has no complaint", async () => {
  await helm(["lint", "--strict", CHART]);
  const folder = mkdtempSync(join(tmpdir(), "coroom-packed-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const { version } = parse(readFileSync(`${CHART}/Chart.yaml`, "utf8")) as { version: string };
  await helm(["package", CHART, "--destination", folder]);
  expect(await chartWith({}, join(folder, `coroom-${version}.tgz`))).toEqual(await chartWith());
});

test("[HELM14] the Kubernetes page names existing values, and its example is accepted", async () => {
  const page = readFileSync("docs/operations/kubernetes.md", "utf8");
  const [, example] = /```yaml\n([^`]+)```/.exec(page)!;
  expect(await chartWith(parse(example!) as ChartValues)).toMatchObject({ "Ingress coroom": { spec: { ingressClassName: "nginx" } } });

  const [, table] = /value of the chart \|\n((?:\|.+\n)+)/.exec(page)!;
  const cells = table!.split("\n").map((row) => row.split("|")[2] ?? "");
  const named = cells.flatMap((cell) => [...cell.matchAll(/[` ]([a-z]\w+\.\w+)[`:=]/g)].map(([, path]) => path!));
  expect(named.length).toBeGreaterThan(8);
  const known = [...PATHS, ...PATHS.map((path) => path.split(".").slice(0, 2).join("."))];
  expect(named.filter((path) => !known.includes(path))).toEqual([]);
});
