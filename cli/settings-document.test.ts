import { expect, test } from "vitest";

import { constant, positiveInteger, readableSettings } from "../shared/settings/settings.ts";
import { startGroups } from "./settings.ts";
import { settingsDocument } from "./settings-document.ts";

test("[CMD4] docs/SETTINGS.md matches the declared settings (npm run settings-doc updates it)", async () => {
  await expect(settingsDocument(startGroups)).toMatchFileSnapshot("../docs/SETTINGS.md");
});

test("[CMD5] the row of a setting shows the values that its parser accepts, and constants have no row", () => {
  const document = settingsDocument({
    gateway: { drainMsMax: { parse: positiveInteger, fallback: 30_000, meaning: "Milliseconds." }, settleMs: constant(50) },
  });
  expect(document.split("\n")).toContain("| `COROOM_DRAIN_MS_MAX` | a positive whole number | 30000 | Milliseconds. |");
  expect(document).not.toContain("SETTLE");
});

test("[SETD1] an operator decides at most 60 settings; all others are advanced", () => {
  const basic = new Set(
    Object.values(startGroups).flatMap((group) => readableSettings(group).flatMap(([name, { basic }]) => (basic === true ? [name] : []))),
  );
  expect(basic.size).toBeLessThanOrEqual(60);
  expect(basic).toContain("jwtSecret");
});
