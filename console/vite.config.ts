import { defineConfig } from "vite";

export default defineConfig({
  root: import.meta.dirname,
  build: { outDir: "dist", emptyOutDir: true, chunkSizeWarningLimit: 800, assetsInlineLimit: 0 },
  // Two copies of Yjs in one page do not accept each other's documents.
  resolve: { dedupe: ["yjs"] },
});
