#!/usr/bin/env node
/** The command `coroom`. Nothing else is loaded before it is known that this Node can load it. */

import { oldNode } from "./old-node.ts";

const problem = oldNode(process.versions.node);
if (problem !== undefined) {
  process.stderr.write(`coroom: ${problem}\n`);
  process.exit(1);
}
const { obeyCommandLine } = await import("./command-line.ts");
await obeyCommandLine();
