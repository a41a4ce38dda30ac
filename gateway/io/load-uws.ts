/**
 * Loads the uWebSockets.js that runs here. The newer has binaries for Node 22, 24 and 26 that need glibc 2.38, the older
 * for Node 20, 22 and 23 that run on glibc 2.36; where both run the newer is taken.
 */

import { createRequire } from "node:module";

export type Uws = typeof import("uws-node20");

const require = createRequire(import.meta.url);
const NODE_OF_NEWER = 22;

/** Throws, with what each said, when neither runs. */
export function loadUws(load: (name: string) => unknown = require, version = process.versions.node): Uws {
  const node = Number(version.split(".")[0]);
  // Under Node 20 the newer would load the older's binary, found beside it, under its own JavaScript.
  const names = node >= NODE_OF_NEWER ? ["uws-node22", "uws-node20"] : ["uws-node20"];
  const reasons: unknown[] = [];
  for (const name of names) {
    try {
      return load(name) as Uws;
    } catch (error) {
      reasons.push(error); // It has no binary for this Node, or its binary wants a newer libc: both come as a plain Error.
    }
  }
  throw new AggregateError(
    reasons,
    `uWebSockets.js does not run under Node ${version} on ${process.platform} ${process.arch} with ${libc()}: use Node 20 or 22, or on Linux with glibc 2.38 or newer (Debian 13), on macOS or on Windows also 24 or 26`,
  );
}

function libc(): string {
  const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } };
  return header.glibcVersionRuntime === undefined ? "no glibc" : `glibc ${header.glibcVersionRuntime}`;
}
