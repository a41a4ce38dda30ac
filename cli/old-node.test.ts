import { readFileSync } from "node:fs";

import { expect, test } from "vitest";

import { oldNode } from "./old-node.ts";

test.each(["18.20.4", "20.18.1", "22.11.0", "16.0.0"])("[NODE1] Node %s is refused as too old before anything is loaded", (version) => {
  expect(oldNode(version)).toContain(`this is Node ${version}`);
});

test.each(["20.19.0", "22.12.0", "22.20.1", "24.0.0", "26.1.0", process.versions.node])("[NODE2] Node %s is accepted", (version) => {
  expect(oldNode(version)).toBeUndefined();
});

test("[NODE3] the versions match package.json, and the check runs before anything is loaded", () => {
  expect((JSON.parse(readFileSync("package.json", "utf8")) as { engines: { node: string } }).engines.node).toMatch(
    /^\^20\.19 \|\| \^22\.12 /,
  );
  expect(readFileSync("cli/main.ts", "utf8").match(/from "[^"]+"/g)).toEqual(['from "./old-node.ts"']);
  expect(readFileSync("cli/old-node.ts", "utf8")).not.toContain("import ");
});

test("[NODE4] the build reports an old Node before a tool that such a Node cannot load", () => {
  const { scripts } = JSON.parse(readFileSync("package.json", "utf8")) as { scripts: { build: string } };
  expect(scripts.build).toMatch(/^npm run build:server && node dist\/cli\/main\.js --help > \/dev\/null && /);
});

test.each(["README.md", "docs/guide/thirty-minutes.md", "deploy/Dockerfile"])(
  "[NODE5] where %s names Node 24, it names the glibc that the gateway needs there",
  (file) => {
    const requirements = readFileSync(file, "utf8")
      .split("\n")
      .filter((line) => /Node 20\.19\b/.test(line));
    expect(requirements.length).toBeGreaterThan(0);
    for (const requirement of requirements) expect(requirement).toMatch(/24 .*26 .*glibc 2\.38/);
  },
);
