import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { expect, test } from "vitest";

import { readSettings, SettingError } from "../shared/settings/settings.ts";
import { exportSettings } from "./command-settings.ts";
import { exportRoom } from "./import.ts";

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
