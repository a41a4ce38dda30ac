import { expect, test } from "vitest";

import { readSettings, SettingError } from "../shared/settings/settings.ts";
import { startSettings } from "./settings.ts";
import { start } from "./start.ts";
import { refuseLateRepeats, refuseShortWriterMemory } from "./start-checks.ts";

const checkpointClientMsMax = startSettings.checkpointClientMsMax.fallback;
const dedupeMsMin = startSettings.dedupeMsMin.fallback;

test.each(["room-server", "document-service"] as const)(
  "[FIT1] a %s does not start when checkpoints forget writers sooner than owners may, and the error names the settings",
  (role) => {
    const forgetful = { roles: [role], checkpointClientMsMax: 299_999, dedupeMsMin: 300_000 };
    expect(() => refuseShortWriterMemory(forgetful)).toThrow(SettingError);
    expect(() => refuseShortWriterMemory(forgetful)).toThrow(/Raise COROOM_CHECKPOINT_CLIENT_MS_MAX or lower COROOM_DEDUPE_MS_MIN/);
    expect(() => refuseShortWriterMemory({ ...forgetful, checkpointClientMsMax: 300_000 })).not.toThrow();
    expect(() => refuseShortWriterMemory({ roles: [role], checkpointClientMsMax, dedupeMsMin })).not.toThrow();
  },
);

test("[FIT2] roles that use neither setting are not checked", () => {
  expect(() => refuseShortWriterMemory({ roles: ["gateway", "placement"], checkpointClientMsMax: 1, dedupeMsMin: 2 })).not.toThrow();
});

test.each(["gateway", "room-server"] as const)(
  "[FIT8] a %s does not start when gateways would send edits again after owners may have forgotten their writers",
  (role) => {
    const late = { roles: [role], forwardedKeptMs: 260_000, backboneLossMsMax: 30_000, dedupeMsMin: 300_000 };
    expect(() => refuseLateRepeats(late)).toThrow(SettingError);
    expect(() => refuseLateRepeats(late)).toThrow(/Lower COROOM_FORWARDED_KEPT_MS or COROOM_BACKBONE_LOSS_MS_MAX/);
    expect(() => refuseLateRepeats({ ...late, forwardedKeptMs: 259_999 })).not.toThrow();
    const { forwardedKeptMs, backboneLossMsMax } = startSettings;
    const defaults = { forwardedKeptMs: forwardedKeptMs.fallback, backboneLossMsMax: backboneLossMsMax.fallback, dedupeMsMin };
    expect(() => refuseLateRepeats({ roles: [role], ...defaults })).not.toThrow();
    expect(() => refuseLateRepeats({ ...late, roles: ["placement"] })).not.toThrow();
  },
);

test("[FIT3] the check runs before any part of a process starts", async () => {
  const given = readSettings(startSettings, {
    flags: { roles: "room-server", roomSecret: "r".repeat(32), checkpointClientMsMax: "1" },
    env: {},
  });
  await expect(start(given)).rejects.toThrow("COROOM_CHECKPOINT_CLIENT_MS_MAX");
});
