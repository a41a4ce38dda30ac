/**
 * Runs the tests in four groups, one after the other. The number of workers of a group depends on the cores that its
 * tests use. The groups are: unit tests; system tests, which start processes and mostly wait; busy system tests, which
 * use a core completely; and precise system tests, which leave most of the machine idle.
 */

import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";

import { defineConfig } from "vitest/config";

import { LongestFirst } from "./test/longest-first.ts";

// The shell may set NODE_ENV=production, with which the tests of react/ do not load.
process.env["NODE_ENV"] = "test";

const exclude = ["**/node_modules/**", "**/dist/**", ".coroom/**"];
const system = "**/*.system.test.ts";
/** Tests that use more than 0.7 s of CPU per second. */
const busy = [
  "bench/*.system.test.ts",
  "document-service/**/*.system.test.ts",
  "examples/editors.system.test.ts",
  "test/chaos/*.system.test.ts",
  "test/contract/object-store.system.test.ts",
  "test/system/{chaos-replay,replay}.system.test.ts",
];
/** Tests that kill processes within milliseconds, check a participant list at every moment, or measure how busy a process is. */
const precise = ["test/system/{deleted-room,growing-room,presence-kills,room-budget}.system.test.ts"];

/** Tests of `react/` run on the sources of the client, so that they need no build. */
const client = [
  ["", "index"],
  ["/leaderboard", "boards/main"],
].map(([entry, file]) => ({
  find: new RegExp(`^@coroom/client${entry}$`),
  replacement: fileURLToPath(new URL(`client/${file}.ts`, import.meta.url)),
}));

export default defineConfig({
  resolve: { alias: client },
  test: {
    // Ends a test that hangs, on the slowest machine as well. No test measures time with it.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          include: ["**/*.test.ts"],
          exclude: [...exclude, system],
          maxWorkers: availableParallelism() + 1, // Some wait for real timeouts.
          isolate: false,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: "system",
          include: [system],
          exclude: [...exclude, ...busy, ...precise],
          maxWorkers: 5,
          isolate: false,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: "busy",
          include: busy,
          exclude,
          isolate: false,
          maxWorkers: 3,
          maxConcurrency: 2,
          sequence: { groupOrder: 2 },
        },
      },
      {
        extends: true,
        test: { name: "precise", include: precise, exclude, isolate: false, maxWorkers: 2, sequence: { groupOrder: 3 } },
      },
    ],
  },
});
