/**
 * Tests that need nothing share the cores; after them come those on real servers. Each of those starts many processes and
 * then waits for the most part, so two run at a time; at last, one by one, those that need the cores for themselves.
 */
import { defineConfig } from "vitest/config";

const exclude = ["**/node_modules/**", "**/dist/**", ".coroom/**"];
const system = "**/*.system.test.ts";
/** Those that take more than 0.7 s of CPU a second, that kill processes within milliseconds or for a minute, or whose subject is how busy a process is. */
const busy = [
  "bench/*.system.test.ts",
  "document-service/**/*.system.test.ts",
  "test/chaos/*.system.test.ts",
  "test/contract/object-store.system.test.ts",
  "test/system/{chaos-replay,deleted-room,growing-room,presence-kills,replay,room-budget}.system.test.ts",
];

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
        test: { name: "system", include: [system], exclude: [...exclude, ...busy], maxWorkers: 2, sequence: { groupOrder: 1 } },
      },
      { extends: true, test: { name: "busy", include: busy, exclude, maxWorkers: 1, maxConcurrency: 2, sequence: { groupOrder: 2 } } },
    ],
  },
});
