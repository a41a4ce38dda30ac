/** Every document matches the Kubernetes API: the compiler finds unknown, missing and wrongly typed fields. */

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";

import { manifests, type PodSpec } from "./manifests.ts";

const TYPES = resolve("node_modules/kubernetes-types");
const COMPILER = resolve("node_modules/typescript/bin/tsc");
const COMPILER_MS_MAX = 60_000;

/** Folder of the types of each API. */
const FOLDERS: Readonly<Record<string, string>> = {
  "v1": "core/v1",
  "apps/v1": "apps/v1",
  "autoscaling/v2": "autoscaling/v2",
  "networking.k8s.io/v1": "networking/v1",
  "policy/v1": "policy/v1",
};

/** Returns the compiler's errors. Each line begins with the number of the document. */
function complaintsAbout(documents: readonly (typeof manifests)[number][]): readonly string[] {
  const folder = mkdtempSync(join(tmpdir(), "coroom-manifests-"));
  try {
    const names = documents.map(({ file, ...manifest }, at) => {
      const name = `${at}-${file}-${manifest.metadata.name}.ts`;
      const types = JSON.stringify(join(TYPES, `${FOLDERS[manifest.apiVersion]}.d.ts`));
      const text = `import type { ${manifest.kind} } from ${types};\nexport const it: ${manifest.kind} = ${JSON.stringify(manifest)};\n`;
      writeFileSync(join(folder, name), text);
      return name;
    });
    const options = [
      "--noEmit",
      "--strict",
      "--skipLibCheck",
      "--ignoreConfig",
      "--types",
      "",
      "--module",
      "nodenext",
      "--pretty",
      "false",
    ];
    const judged = spawnSync(process.execPath, [COMPILER, ...options, ...names], {
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

test("[KUB1] every document matches the Kubernetes API", () => {
  expect(manifests.length).toBeGreaterThan(30);
  expect(complaintsAbout(manifests)).toEqual([]);
});

test("[KUB2] the check finds a misspelt, wrongly typed or missing field", () => {
  const [gateway] = manifests.filter(({ kind, metadata }) => kind === "Deployment" && metadata.name === "gateway");
  const [container] = gateway!.spec.template.spec.containers;
  const wrongs = [{ readinesProbe: container.readinessProbe }, { args: "start" }, { name: undefined }];
  const documents = wrongs.map((wrong) => {
    const { spec } = gateway!.spec.template;
    const template = {
      ...gateway!.spec.template,
      spec: { ...spec, containers: [{ ...container, ...wrong }] as unknown as PodSpec["containers"] },
    };
    return { ...gateway!, spec: { ...gateway!.spec, template } };
  });
  const found = complaintsAbout(documents).map((line) => /^(?<at>\d+)-.*error TS/.exec(line)?.groups?.["at"]);
  expect([...new Set(found)]).toEqual(["0", "1", "2"]);
});
