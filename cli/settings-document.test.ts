import { expect, test } from "vitest";

import { positiveInteger } from "../shared/config.ts";
import { startGroups } from "./settings.ts";
import { settingsDocument } from "./settings-document.ts";

test("[CMD4] docs/SETTINGS.md has every setting as it is declared: npm run settings-doc brings it up to date", async () => {
  await expect(settingsDocument(startGroups)).toMatchFileSnapshot("../docs/SETTINGS.md");
});

test("[CMD5] a setting's row says what it takes, in the words in which it refuses all else", () => {
  const [, , , , , , , , row] = settingsDocument({
    gateway: { drainMsMax: { parse: positiveInteger, fallback: 30_000, meaning: "how long" } },
  }).split("\n");
  expect(row).toBe("| `COROOM_DRAIN_MS_MAX` | a positive whole number | 30000 | how long |");
});
