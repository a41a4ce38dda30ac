import { expect, test } from "vitest";

import { envName, readSettings, type Settings, SettingError } from "../shared/settings/settings.ts";
import { adminSettings, restoreSettings } from "./command-settings.ts";
import { startSettings } from "./settings.ts";

const WHSEC_TOO_SHORT = "whsec_HUSH";

test("[CFG6] no message about settings shows a secret", () => {
  const settings = { roomSecret: "HUSH", webhookSecrets: WHSEC_TOO_SHORT, webhookUrls: "ftp://ada:HUSH@hooks.example" };
  const read = () =>
    readSettings(startSettings, {
      flags: {},
      env: Object.fromEntries(Object.entries(settings).map(([name, value]) => [envName(name), value])),
    });
  expect(read).toThrow(SettingError);
  expect(read).not.toThrow(/HUSH/);
  for (const name of Object.keys(settings)) expect(read).toThrow(new RegExp(`${envName(name)} must`));
});

test("[CFG7] every setting that is or may contain a secret is declared as secret", () => {
  const all: Settings = { ...startSettings, ...restoreSettings, ...adminSettings.kick };
  const marked = Object.entries(all)
    .filter(([, { secret }]) => secret === true)
    .map(([name]) => name);
  const named = Object.keys(all).filter(
    (name) =>
      /secret|token$|password|^(?:nats|redis|postgres|jwks|traces)Url$|^(?:webhook|firstContent)Urls$/i.test(name) &&
      name !== "knownTokensMax",
  );
  expect(marked.toSorted()).toEqual(named.toSorted());
});
