import { defineConfig } from "vite";

/** Built into a folder of its own, which a gateway serves also where it serves no demo page. */
export default defineConfig({
  root: import.meta.dirname,
  base: "./",
  build: { outDir: "../dist/operations", emptyOutDir: true, assetsInlineLimit: 0 },
});
