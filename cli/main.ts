#!/usr/bin/env node
/** The command `coroom`. It loads nothing else before it knows that this version of Node can load it. */

import { oldNode } from "./old-node.ts";

const problem = oldNode(process.versions.node);
if (problem !== undefined) {
  process.stderr.write(`coroom: ${problem}\n`);
  process.exit(1);
}
const { runProcessCommandLine } = await import("./command-line.ts");
await runProcessCommandLine();
