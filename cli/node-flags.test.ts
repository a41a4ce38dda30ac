/** Every way to start a process of Coroom uses the same flags of Node. */

import { readFileSync } from "node:fs";

import { expect, test } from "vitest";

import { NODE_FLAGS } from "./node-flags.ts";

test("[FLAG1] npm start and the image start Node with these flags", () => {
  const { scripts } = JSON.parse(readFileSync("package.json", "utf8")) as { scripts: Record<string, string> };
  expect(scripts["start"]).toBe(`exec node ${NODE_FLAGS.join(" ")} dist/cli/main.js start`);
  const entrypoint = readFileSync("deploy/Dockerfile", "utf8")
    .split("\n")
    .find((line) => line.startsWith("ENTRYPOINT "))!;
  expect(JSON.parse(entrypoint.slice("ENTRYPOINT ".length))).toEqual(["node", ...NODE_FLAGS, "dist/cli/main.js"]);
});
