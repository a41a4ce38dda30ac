import { expect, test } from "vitest";

import { SettingError } from "../shared/settings/settings.ts";
import { startSettings } from "./settings.ts";
import { refuseUnknownFlags } from "./run.ts";

test("[CLI4] the error names a misspelt flag", () => {
  expect(() => refuseUnknownFlags({ prot: "1", port: "2" }, { name: "start", settings: startSettings })).toThrow(
    new SettingError("unknown flag: --prot. Did you mean --port? Run coroom start --help for the list."),
  );
});
