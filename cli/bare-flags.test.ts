import { expect, test } from "vitest";

import { flag, SettingError, text } from "../shared/config.ts";
import { parseCommandLine } from "./arguments.ts";
import { refuseBareFlags } from "./bare-flags.ts";

const command = {
  name: "kick",
  settings: { user: { parse: text, meaning: "who" }, room: { parse: text, meaning: "where" }, softly: { parse: flag, meaning: "how" } },
};
const refuse = (line: string) => refuseBareFlags(parseCommandLine(line.split(" ")).bare, command);

test("[CLI6] a flag without its value is refused, unless it is true or false", () => {
  expect(() => refuse("kick --user --room notes")).toThrow(new SettingError("no value is given with --user; see coroom kick --help"));
  expect(() => refuse("kick --softly --user --room")).toThrow("no value is given with --user, --room;");
  for (const line of ["kick --user bob --softly", "kick --softly --user=true", "kick --user= --room notes"])
    expect(() => refuse(line)).not.toThrow();
});
