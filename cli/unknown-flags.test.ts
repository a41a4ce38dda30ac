import { expect, test } from "vitest";

import { SettingError } from "../shared/config.ts";
import { adminSettings } from "./admin-settings.ts";
import { helpText } from "./help.ts";
import { placementCommands } from "./ops-placement.ts";
import { startSettings } from "./settings.ts";
import { refuseUnknownFlags } from "./unknown-flags.ts";

test("[CLI3] a misspelt flag is refused by name", () => {
  expect(() => refuseUnknownFlags({ prot: "1", port: "2" }, startSettings)).toThrow(new SettingError("no such flag: --prot; see coroom --help"));
});

test("[CLI4] the help names every setting, as a flag and as a variable", () => {
  const help = helpText();
  expect(help).toContain("--edits-per-second");
  expect(help).toContain("COROOM_EDITS_PER_SECOND");
  expect(help.split("\n").filter((line) => line.startsWith("  --")).length).toBeGreaterThanOrEqual(Object.keys(startSettings).length);
});

test("[CLI5] the help says of every command what it does", () => {
  const listed = helpText().match(/^  coroom [a-z]+(?: ?[a-z-]+)*(?=  )/gm)!.map((line) => line.slice("  coroom ".length));
  expect(listed).toEqual(expect.arrayContaining([...Object.keys(adminSettings), ...Object.keys(placementCommands)]));
});
