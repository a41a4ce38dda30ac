/** Reads `deploy/kubernetes` for its tests: every document, and the environment, ports and probes of every pod. */

import { readdirSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { parse, parseAllDocuments } from "yaml";

import type { Environment } from "../role-settings.ts";

export const FOLDER = "deploy/kubernetes";

type Named = { readonly name: string };
type Labels = Readonly<Record<string, string>>;
export type Selector = {
  readonly matchLabels?: Labels;
  readonly matchExpressions?: readonly { readonly key: string; readonly operator: string; readonly values: readonly string[] }[];
};
type Variable = Named & {
  readonly value?: string;
  readonly valueFrom?: {
    readonly secretKeyRef?: Named & { readonly key: string; readonly optional?: boolean };
    readonly fieldRef?: { readonly fieldPath: string };
    readonly resourceFieldRef?: { readonly resource: string };
  };
};
type KubernetesProbe = {
  readonly httpGet?: { readonly path: string; readonly port: string };
  readonly tcpSocket?: { readonly port: string };
};
export type Container = Named & {
  readonly image: string;
  readonly args: readonly string[];
  readonly envFrom?: readonly { readonly configMapRef: Named }[];
  readonly env?: readonly Variable[];
  readonly ports: readonly (Named & { readonly containerPort: number })[];
  readonly startupProbe: KubernetesProbe;
  readonly readinessProbe: KubernetesProbe;
  readonly livenessProbe: KubernetesProbe;
  readonly lifecycle?: { readonly preStop: { readonly sleep: { readonly seconds: number } } };
  readonly resources: { readonly requests: Readonly<Record<string, string | number>>; readonly limits: Readonly<Record<string, string>> };
  readonly securityContext: unknown;
  readonly volumeMounts?: readonly { readonly mountPath: string }[];
};
export type PodSpec = {
  readonly terminationGracePeriodSeconds: number;
  readonly enableServiceLinks: boolean;
  readonly automountServiceAccountToken: boolean;
  readonly securityContext: unknown;
  readonly containers: readonly [Container];
  readonly topologySpreadConstraints?: readonly { readonly labelSelector: Selector }[];
};
export type Peer = { readonly podSelector?: Selector; readonly namespaceSelector?: Selector; readonly ipBlock?: { readonly cidr: string } };
export type Rule = { readonly from?: readonly Peer[]; readonly to?: readonly Peer[]; readonly ports: readonly { readonly port: number }[] };
type Manifest = {
  readonly kind: string;
  readonly apiVersion: string;
  readonly metadata: Named & { readonly annotations?: Labels };
  readonly spec: {
    readonly replicas?: number;
    readonly minReplicas?: number;
    readonly ordinals?: { readonly start: number };
    readonly serviceName?: string;
    readonly selector: Selector | Labels;
    readonly template: { readonly metadata: { readonly labels: Labels }; readonly spec: PodSpec };
    readonly ports: readonly (Named & { readonly port: number; readonly targetPort?: string })[];
    readonly podSelector: Selector;
    readonly policyTypes: readonly string[];
    readonly ingress?: readonly Rule[];
    readonly egress?: readonly Rule[];
    readonly scaleTargetRef: Named & { readonly kind: string };
    readonly rules: readonly { readonly http: { readonly paths: readonly { readonly backend: Backend }[] } }[];
  };
};
type Backend = { readonly service: Named & { readonly port: Named } };
type Kustomization = {
  readonly resources: readonly string[];
  readonly configMapGenerator: readonly (Named & { readonly envs: readonly string[] })[];
  readonly images: readonly Named[];
};

export const FILES = readdirSync(FOLDER).filter((file) => /\.(yaml|env)$/.test(file) && file !== "kustomization.yaml");
export const kustomization = parse(textOf("kustomization.yaml")) as Kustomization;

export const manifests: readonly (Manifest & { readonly file: string })[] = kustomization.resources
  .filter((file) => file.endsWith(".yaml"))
  .flatMap((file) => documentsOf(`${FOLDER}/${file}`).map((document) => ({ ...(document as Manifest), file })));

export function manifestsOf(...kinds: readonly string[]): readonly (Manifest & { readonly file: string })[] {
  return manifests.filter(({ kind }) => kinds.includes(kind));
}

/** Deployments and StatefulSets. */
export const workloads = manifestsOf("Deployment", "StatefulSet");

/** Throws if a document does not parse. */
export function documentsOf(path: string): readonly unknown[] {
  return parseAllDocuments(readFileSync(path, "utf8"), { uniqueKeys: true }).map((document) => {
    if (document.errors.length > 0) throw document.errors[0]!;
    return document.toJS() as unknown;
  });
}

/** Generated ConfigMaps by the names under which pods refer to them. */
export const configMaps: Readonly<Record<string, Environment>> = Object.fromEntries(
  kustomization.configMapGenerator.map(({ name, envs }) => [name, Object.fromEntries(envs.flatMap((file) => variablesIn(textOf(file))))]),
);

/** Builds the environment like the kubelet. `of`: the pod's fields and the keys of the Secret. */
export function environmentOf(
  container: Container,
  of: { readonly fields: Environment; readonly secret: (key: string) => string },
): Environment {
  const env: Record<string, string> = Object.assign({}, ...(container.envFrom ?? []).map(({ configMapRef: { name } }) => configMaps[name]));
  for (const { name, value, valueFrom } of container.env ?? []) {
    const { secretKeyRef, fieldRef, resourceFieldRef } = valueFrom ?? {};
    if (value !== undefined) env[name] = value.replaceAll(/\$\((\w+)\)/g, (_, variable: string) => env[variable]!);
    if (secretKeyRef !== undefined) env[name] = of.secret(secretKeyRef.key);
    if (fieldRef !== undefined) env[name] = of.fields[fieldRef.fieldPath]!;
    if (resourceFieldRef !== undefined) {
      const [, kind, resource] = /^(requests|limits)\.(.+)$/.exec(resourceFieldRef.resource)! as unknown as [
        string,
        "requests" | "limits",
        string,
      ];
      env[name] = String(amountOf(container.resources[kind][resource]!));
    }
  }
  return env;
}

/** Bytes of memory, or cores. */
export function amountOf(quantity: string | number): number {
  const [, number, unit] = /^(\d+)(m|Mi|Gi)?$/.exec(String(quantity))!;
  return Number(number) * { "": 1, "m": 0.001, "Mi": 1024 ** 2, "Gi": 1024 ** 3 }[unit ?? ""]!;
}

export function isSelected(labels: Labels, { matchLabels = {}, matchExpressions = [] }: Selector): boolean {
  return (
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every(({ key, operator, values }) => operator === "In" && values.includes(labels[key] ?? ""))
  );
}

function variablesIn(text: string): (readonly [string, string])[] {
  return text
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)] as const);
}

function textOf(file: string): string {
  return readFileSync(`${FOLDER}/${basename(file)}`, "utf8");
}
