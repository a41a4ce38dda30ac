/** Renders the chart with Helm, and the kustomization with kubectl, for tests. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative, resolve } from "node:path";
import { parseAllDocuments } from "yaml";

import { runProgram } from "../../engines/run-program.ts";
import type { KubernetesDocument } from "../kubernetes/schema.ts";
import { type ChartPrograms, chartPrograms } from "./programs.ts";

export const CHART = resolve("deploy/helm");
const RENDER_MS_MAX = 60_000;

export type ChartValues = { readonly [name: string]: unknown };
/** By kind and name. */
export type ChartObjects = Readonly<Record<string, KubernetesDocument>>;

let programs: Promise<ChartPrograms> | undefined;

export async function helm(args: readonly string[], values?: ChartValues): Promise<string> {
  return await inFolder(async (folder) => {
    const file = join(folder, "values.yaml");
    if (values !== undefined) writeFileSync(file, JSON.stringify(values));
    const { helm: program } = await (programs ??= chartPrograms());
    // Nothing of the user's: neither a cluster nor plugins.
    const env = { KUBECONFIG: join(folder, "none"), HELM_CONFIG_HOME: folder, HELM_CACHE_HOME: folder, HELM_DATA_HOME: folder };
    return await runProgram(program, [...args, ...(values === undefined ? [] : ["--values", file])], { msMax: RENDER_MS_MAX, env });
  });
}

export async function chartWith(values: ChartValues = {}, chart = CHART): Promise<ChartObjects> {
  return objectsIn(await helm(["template", "coroom", chart, "--namespace", "coroom", "--kube-version", "1.35.0"], values));
}

export async function kustomized(components: readonly string[] = []): Promise<ChartObjects> {
  return await inFolder(async (folder) => {
    const at = (path: string): string => relative(folder, resolve("deploy/kubernetes", path));
    writeFileSync(join(folder, "kustomization.yaml"), JSON.stringify({ resources: [at(".")], components: components.map(at) }));
    const { kubectl } = await (programs ??= chartPrograms());
    return objectsIn(await runProgram(kubectl, ["kustomize", folder], { msMax: RENDER_MS_MAX }));
  });
}

function objectsIn(text: string): ChartObjects {
  const documents = parseAllDocuments(text, { uniqueKeys: true }).map((document) => {
    if (document.errors.length > 0) throw document.errors[0]!;
    return document.toJS() as KubernetesDocument | null;
  });
  const named = documents.flatMap((document) =>
    document === null ? [] : [[`${document.kind} ${document.metadata.name}`, document] as const],
  );
  const objects = Object.fromEntries(named);
  if (Object.keys(objects).length < named.length) throw new Error("two objects of one kind have one name");
  return objects;
}

async function inFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "coroom-chart-"));
  try {
    return await work(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
