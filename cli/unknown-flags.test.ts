import { expect, test } from "vitest";

import { SettingError } from "../shared/config.ts";
import { startSettings } from "./settings.ts";
import { refuseUnknownFlags } from "./unknown-flags.ts";

test("[CLI4] a misspelt flag is refused by name", () => {
  expect(() => refuseUnknownFlags({ prot: "1", port: "2" }, { name: "start", settings: startSettings })).toThrow(
    new SettingError("no such flag: --prot; see coroom start --help"),
  );
});
