/** Lets the TypeScript compiler check documents against the Kubernetes API. */

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const TYPES = resolve("node_modules/kubernetes-types");
const COMPILER = resolve("node_modules/typescript/bin/tsc");
const COMPILER_MS_MAX = 60_000;
const OPTIONS = ["--noEmit", "--strict", "--skipLibCheck", "--ignoreConfig", "--types", "", "--module", "nodenext", "--pretty", "false"];

/** Folder of the types of each API. */
const FOLDERS: Readonly<Record<string, string>> = {
  "v1": "core/v1",
  "apps/v1": "apps/v1",
  "autoscaling/v2": "autoscaling/v2",
  "networking.k8s.io/v1": "networking/v1",
  "policy/v1": "policy/v1",
};

export type KubernetesDocument = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
};

/** Returns the compiler's errors. Each line begins with the number of the document. */
export function complaintsAbout(documents: readonly KubernetesDocument[]): readonly string[] {
  const folder = mkdtempSync(join(tmpdir(), "coroom-manifests-"));
  try {
    const names = documents.map((document, at) => {
      const { kind, apiVersion, metadata } = document;
      const name = `${at}-${kind}-${metadata.name}.ts`;
      const types = JSON.stringify(join(TYPES, `${FOLDERS[apiVersion]}.d.ts`));
      const text = `import type { ${kind} } from ${types};\nexport const it: ${kind} = ${JSON.stringify(document)};\n`;
      writeFileSync(join(folder, name), text);
      return name;
    });
    const judged = spawnSync(process.execPath, [COMPILER, ...OPTIONS, ...names], {
      cwd: folder,
      encoding: "utf8",
      timeout: COMPILER_MS_MAX,
    });
    const lines = `${judged.stdout}${judged.stderr}`.split("\n").filter((line) => line !== "");
    if (judged.status !== 0 && lines.length === 0) throw judged.error ?? new Error(`the compiler ended with ${judged.status}`);
    return lines;
  } finally {
    rmSync(folder, { recursive: true });
  }
}
