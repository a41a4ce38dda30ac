import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { expect, test } from "vitest";

import { folderObjects } from "./folder-objects.ts";

test("[FOB1] a folder in which two rooms may have the same files is refused with what to do", async () => {
  const folder = mkdtempSync(join(tmpdir(), "coroom-folder-"));
  try {
    await expect(folderObjects(folder)).resolves.toBeDefined();
    symlinkSync(join(folder, ".unfinished"), join(folder, ".UNFINISHED")); // As a file system shows it that ignores case.
    await expect(folderObjects(folder)).rejects.toThrow("set COROOM_SNAPSHOTS_FOLDER");
  } finally {
    rmSync(folder, { recursive: true });
  }
});
