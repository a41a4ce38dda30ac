import { expect, test } from "vitest";
import { parseCommandLine } from "./run.ts";

test("[CLI1] the parser splits a command line into the command and its flags, in every spelling", () => {
  expect(parseCommandLine(["start", "--roles", "gateway,placement", "--port=0", "--production", "--data-dir", "/tmp/x y"])).toEqual({
    command: "start",
    flags: { roles: "gateway,placement", port: "0", production: "true", dataDir: "/tmp/x y" },
    bare: ["production"],
  });
  expect(parseCommandLine([])).toEqual({ command: undefined, flags: {}, bare: [] });
});

test("[CLI2] the error names a word that is neither a command nor a flag", () => {
  expect(() => parseCommandLine(["start", "now"])).toThrow(/"now" is neither/);
  expect(() => parseCommandLine(["-p", "8080"])).toThrow(/"-p" is neither/);
});

test("[CLI3] a command of a group has two words", () => {
  expect(parseCommandLine(["ops", "watch", "--last", "5"], ["ops"])).toEqual({ command: "ops watch", flags: { last: "5" }, bare: [] });
  expect(() => parseCommandLine(["ops", "watch", "now"], ["ops"])).toThrow(/"now" is neither/);
});
