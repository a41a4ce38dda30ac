/**
 * Tests that need nothing share the cores; after them come those on real servers. Most of these start many processes and
 * then wait for the most part, so three run at a time; then two at a time those that keep a core at work; at last, one by
 * one, those that need the cores for themselves.
 */
import { defineConfig } from "vitest/config";

const exclude = ["**/node_modules/**", "**/dist/**", ".coroom/**"];
const system = "**/*.system.test.ts";
/** Those that take more than 0.7 s of CPU a second. */
const busy = [
  "bench/*.system.test.ts",
  "document-service/**/*.system.test.ts",
  "test/chaos/*.system.test.ts",
  "test/contract/object-store.system.test.ts",
  "test/system/{chaos-replay,replay}.system.test.ts",
];
/** Those that kill processes within milliseconds, or tell who was seen at every moment, or whose subject is how busy a process is. */
const alone = ["test/system/{deleted-room,growing-room,presence-kills,room-budget}.system.test.ts"];

export default defineConfig({
  test: {
    // Not what a test may take: when one that hangs is given up, however busy the machine.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          include: ["**/*.test.ts"],
          exclude: [...exclude, system],
          maxWorkers: "100%",
          isolate: false,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: { name: "system", include: [system], exclude: [...exclude, ...busy, ...alone], maxWorkers: 3, sequence: { groupOrder: 1 } },
      },
      { extends: true, test: { name: "busy", include: busy, exclude, maxWorkers: 2, maxConcurrency: 2, sequence: { groupOrder: 2 } } },
      { extends: true, test: { name: "alone", include: alone, exclude, maxWorkers: 1, sequence: { groupOrder: 3 } } },
    ],
  },
});
