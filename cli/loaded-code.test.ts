/**
 * The packages that a process loads at its start: most of the CPU of a start goes into them. An import for one constant
 * can load a hundred files, and nothing else shows it.
 */

import { readFileSync } from "node:fs";
import { posix } from "node:path";

import { expect, test } from "vitest";

const EVERY_ROLE = ["@nats-io/jetstream", "@nats-io/kv", "@nats-io/obj", "lib0", "nats", "pino", "prom-client", "zod"];

test("[CODE1] help and the dispatch of a command load no package but the codec's", () => {
  expect(packagesOf("cli/command-line.ts")).toEqual(["lib0"]);
});

test.each([
  ["placement", []],
  ["room-server", []],
  ["document-service", ["aws4fetch", "piscina", "yjs"]],
  ["leaderboard", ["ioredis"]],
  ["gateway", ["jose"]],
])("[CODE2] the role %s loads the packages of every role, and %j", (role, own) => {
  expect(packagesOf("cli/start.ts", `${role}/main.ts`)).toEqual([...EVERY_ROLE, ...own].toSorted());
});

test("[CODE3] a thread for documents loads only what merges need", () => {
  expect(packagesOf("document-service/io/document-worker.ts")).toEqual(["lib0", "piscina", "yjs"]);
});

/** The packages that these files import, themselves or through other files. Dynamic imports do not count. */
function packagesOf(...entries: string[]): string[] {
  const seen = new Set(entries);
  const packages = new Set<string>();
  for (const file of seen) {
    for (const target of importsOf(file)) {
      if (target.startsWith(".")) seen.add(posix.join(posix.dirname(file), target));
      else if (!target.startsWith("node:")) packages.add(/^(?:@[^/]+\/)?[^/]+/.exec(target)![0]);
    }
  }
  return [...packages].toSorted();
}

/** `import type` is not compiled. A list with only types in braces is: the compiler keeps its import. */
function importsOf(file: string): string[] {
  const text = readFileSync(file, "utf8");
  return [...text.matchAll(/^(?:import|export) (?!type\b)(?:[^;"]*? from )?"([^"]+)"/gm)].map(([, target]) => target!);
}
