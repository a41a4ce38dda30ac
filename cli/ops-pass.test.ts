import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { expect, onTestFinished, test } from "vitest";

import { readSettings } from "../shared/settings/settings.ts";
import type { UnixMillis } from "../shared/ids.ts";
import { isOperatorPass } from "../shared/io/operator-pass.ts";
import { roleSecrets } from "./secrets.ts";
import { opsPassSettings } from "./command-settings.ts";
import { operatorPass } from "./token.ts";

test("[OPP1] a pass is signed with the configured or local secret, for hours and at most for days", () => {
  const dataDir = mkdtempSync(join(tmpdir(), "coroom-pass-"));
  onTestFinished(() => rmSync(dataDir, { recursive: true }));
  const made = (flags: Record<string, string>) => operatorPass(readSettings(opsPassSettings, { flags: { dataDir, ...flags }, env: {} }));
  expect(() => made({})).toThrow(/no system was started with the data folder .* or set COROOM_OPERATOR_SECRET/);
  const inHours = (hours: number) => (Date.now() + hours * 3_600_000) as UnixMillis;
  const { operatorSecret } = roleSecrets(dataDir);
  expect([isOperatorPass(made({}), operatorSecret, inHours(7)), isOperatorPass(made({}), operatorSecret, inHours(9))]).toEqual([
    true,
    false,
  ]);
  expect(isOperatorPass(made({ operatorSecret: "of a deployment", ttl: "1h" }), "of a deployment", inHours(0))).toBe(true);
  expect(() => made({ ttl: "8d" })).toThrow(/at most 7d/);
});
