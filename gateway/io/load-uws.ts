/**
 * Loads the uWebSockets.js that runs here. The newer needs Node 22 and glibc 2.38, the older carries binaries for
 * Node 18 to 23 and runs on glibc 2.36; where both run the newer is taken.
 */

import { createRequire } from "node:module";

export type Uws = typeof import("uws-node20");

const require = createRequire(import.meta.url);
const NODE_OF_NEWER = 22;

/** Throws, with what each said, when neither runs. */
export function loadUws(): Uws {
  const node = Number(process.versions.node.split(".")[0]);
  // Under Node 20 the newer would load the older's binary, found beside it, under its own JavaScript.
  const names = node >= NODE_OF_NEWER ? ["uws-node22", "uws-node20"] : ["uws-node20"];
  const reasons: unknown[] = [];
  for (const name of names) {
    try {
      return require(name) as Uws;
    } catch (error) {
      reasons.push(error); // It has no binary for this Node, or its binary wants a newer libc: both come as a plain Error.
    }
  }
  throw new AggregateError(reasons, `uWebSockets.js does not run under Node ${process.versions.node} on ${process.platform} ${process.arch}: use Node 20, 22, 24 or 26 on Linux, macOS or Windows`);
}
