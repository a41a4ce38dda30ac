import { expect, test } from "vitest";

import { readSettings, SettingError } from "../shared/config.ts";
import { refuseForgetful } from "./fitting-settings.ts";
import { startSettings } from "./settings.ts";
import { start } from "./start.ts";

const checkpointClientMsMax = startSettings.checkpointClientMsMax.fallback;
const dedupeMsMin = startSettings.dedupeMsMin.fallback;

test.each(["room-server", "document-service"] as const)(
  "[FIT1] a %s does not start where checkpoints forget writers sooner than owners may, and it is said what to change",
  (role) => {
    const forgetful = { roles: [role], checkpointClientMsMax: 299_999, dedupeMsMin: 300_000 };
    expect(() => refuseForgetful(forgetful)).toThrow(SettingError);
    expect(() => refuseForgetful(forgetful)).toThrow(/raise COROOM_CHECKPOINT_CLIENT_MS_MAX or lower COROOM_DEDUPE_MS_MIN/);
    expect(() => refuseForgetful({ ...forgetful, checkpointClientMsMax: 300_000 })).not.toThrow();
    expect(() => refuseForgetful({ roles: [role], checkpointClientMsMax, dedupeMsMin })).not.toThrow();
  },
);

test("[FIT2] roles that use neither are not asked", () => {
  expect(() => refuseForgetful({ roles: ["gateway", "placement"], checkpointClientMsMax: 1, dedupeMsMin: 2 })).not.toThrow();
});

test("[FIT3] it is asked before anything of a process starts", async () => {
  const given = readSettings(startSettings, {
    flags: { roles: "room-server", roomSecret: "r".repeat(32), checkpointClientMsMax: "1" },
    env: {},
  });
  await expect(start(given)).rejects.toThrow("COROOM_CHECKPOINT_CLIENT_MS_MAX");
});
