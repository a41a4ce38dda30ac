import { expect, test } from "vitest";

import { flag, SettingError, text } from "../shared/settings/settings.ts";
import { refuseBareFlags, parseCommandLine } from "./run.ts";

const command = {
  name: "kick",
  settings: { user: { parse: text, meaning: "who" }, room: { parse: text, meaning: "where" }, softly: { parse: flag, meaning: "how" } },
};
const refuse = (line: string) => refuseBareFlags(parseCommandLine(line.split(" ")).bare, command);

test("[CLI6] a flag without its value is refused, unless it is a boolean flag", () => {
  expect(() => refuse("kick --user --room notes")).toThrow(
    new SettingError("missing value for --user. Run coroom kick --help for the list."),
  );
  expect(() => refuse("kick --softly --user --room")).toThrow("missing value for --user, --room.");
  for (const line of ["kick --user bob --softly", "kick --softly --user=true", "kick --user= --room notes"])
    expect(() => refuse(line)).not.toThrow();
});
