import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { expect, test } from "vitest";

import { readSettings, SettingError } from "../shared/settings/settings.ts";
import { exportSettings } from "./command-settings.ts";
import { exportFileOf, exportRoom } from "./import.ts";
import { openSource } from "./import-sources.ts";

const run = (to: string): Promise<void> =>
  exportRoom(readSettings(exportSettings, { flags: { room: "notes", to, token: "t", url: "http://127.0.0.1:1" }, env: {} }), () => {});

test.runIf(process.platform === "linux")("[EXP1] a folder below /proc is refused at once, before a gateway is asked", async () => {
  await expect(run("/proc/coroom")).rejects.toThrow(SettingError);
  await expect(run("/proc/coroom/below")).rejects.toThrow(
    "cannot write into the folder /proc/coroom/below (ENOENT). Make it writable for this user, or set --to to another folder",
  );
});

test("[EXP2] a folder below a file is refused", async () => {
  const file = join(mkdtempSync(join(tmpdir(), "coroom-export-")), "file");
  writeFileSync(file, "");
  await expect(run(join(file, "below"))).rejects.toThrow(/cannot write into the folder .*below \(ENOTDIR\)/);
});

test.each([
  ["team/notes 100%", "team%2Fnotes%20100%25.yjs"],
  ["汉".repeat(27), `${encodeURIComponent("汉".repeat(27))}.yjs`],
  [`a/${"汉".repeat(60)}%`, `a%2F${"汉".repeat(60)}%25.yjs`],
])("[EXP4] the file of %s has a name that a file system accepts, and that an import reads", async (room, file) => {
  expect(exportFileOf(room, "yjs")).toBe(file);
  const folder = mkdtempSync(join(tmpdir(), "coroom-export-"));
  writeFileSync(join(folder, file), "");
  expect((await openSource(folder)).names).toEqual([room]);
});

test("[EXP4] a name that is too long for any file names the alternative", () => {
  expect(() => exportFileOf("汉".repeat(128), "yjs")).toThrow(/too long for a file.*GET \/v1\/rooms\/\{room\}\/snapshot/);
});
