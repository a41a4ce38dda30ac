/** Tests that need nothing share the cores; after them those on real servers come one at a time, for each starts many processes. */
import { defineConfig } from "vitest/config";

const exclude = ["**/node_modules/**", "**/dist/**", ".coroom/**"];

export default defineConfig({
  test: {
    // Not what a test may take: when one that hangs is given up, however busy the machine.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    projects: [
      { extends: true, test: { name: "unit", include: ["**/*.test.ts"], exclude: [...exclude, "**/*.system.test.ts"], maxWorkers: "100%", isolate: false, sequence: { groupOrder: 0 } } },
      { extends: true, test: { name: "system", include: ["**/*.system.test.ts"], exclude, maxWorkers: 1, sequence: { groupOrder: 1 } } },
    ],
  },
});
