import { defineConfig } from "vite";

/** A separate output folder: a gateway serves the console even when it serves no demo page. */
export default defineConfig({
  root: import.meta.dirname,
  base: "./",
  build: { outDir: "../dist/operations", emptyOutDir: true, assetsInlineLimit: 0 },
});
