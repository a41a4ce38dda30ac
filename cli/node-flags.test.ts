/** Every way to start a process of Coroom uses the same flags of Node. */

import { readFileSync } from "node:fs";

import { expect, test } from "vitest";

import { NODE_FLAGS } from "./node-flags.ts";

/** `npm start` runs the bridge too, unless COROOM_ROLES names other roles. */
const ROLES = "COROOM_ROLES=${COROOM_ROLES:-engines,placement,room-server,document-service,leaderboard,gateway,y-websocket,hocuspocus}";

test("[FLAG1] npm start and the image start Node with these flags", () => {
  const { scripts } = JSON.parse(readFileSync("package.json", "utf8")) as { scripts: Record<string, string> };
  expect(scripts["start"]).toBe(`${ROLES} exec node ${NODE_FLAGS.join(" ")} dist/cli/main.js start`);
  const entrypoint = readFileSync("deploy/Dockerfile", "utf8")
    .split("\n")
    .find((line) => line.startsWith("ENTRYPOINT "))!;
  expect(JSON.parse(entrypoint.slice("ENTRYPOINT ".length))).toEqual(["node", ...NODE_FLAGS, "dist/cli/main.js"]);
});
