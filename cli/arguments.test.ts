import { expect, test } from "vitest";

import { list, readSettings, SettingError, single } from "../shared/settings/settings.ts";
import { parseCommandLine, subjectOf } from "./run.ts";

test("[CLI1] the parser splits a command line into the command and its flags, in every spelling", () => {
  expect(parseCommandLine(["start", "--roles", "gateway,placement", "--port=0", "--production", "--data-dir", "/tmp/x y"])).toEqual({
    command: "start",
    words: [],
    flags: { roles: "gateway,placement", port: "0", production: "true", dataDir: "/tmp/x y" },
    bare: ["production"],
  });
  expect(parseCommandLine([])).toEqual({ command: undefined, words: [], flags: {}, bare: [] });
});

test("[CLI2] the error names a word that is neither a command nor a flag", () => {
  expect(() => subjectOf(["now"], {}, { name: "start", settings: {} })).toThrow(/"now" is neither/);
  expect(() => subjectOf(["notes", "now"], {}, { name: "members", subject: "room", settings: {} })).toThrow(/"now" is neither/);
  expect(() => parseCommandLine(["-p", "8080"])).toThrow(/"-p" is neither/);
});

test("[CLI3] a command of a group has two words", () => {
  expect(parseCommandLine(["ops", "watch", "--last", "5"], ["ops"])).toEqual({
    command: "ops watch",
    words: [],
    flags: { last: "5" },
    bare: [],
  });
});

test("[CLI14] a word after the command stands for the command's subject", () => {
  expect(parseCommandLine(["ops", "room", "notes", "--tenant", "acme"], ["ops"])).toEqual({
    command: "ops room",
    words: ["notes"],
    flags: { tenant: "acme" },
    bare: [],
  });
  const members = { name: "members", subject: "room", settings: {} };
  expect(subjectOf(["notes"], {}, members)).toEqual({ room: "notes" });
  expect(subjectOf([], { room: "notes" }, members)).toEqual({});
  expect(() => subjectOf(["notes"], { room: "other" }, members)).toThrow(
    new SettingError('"notes" and --room both name the room. Give one of them.'),
  );
});

test.each([[["token", "--room", "a", "--room", "b"]], [["token", "--room=a", "--room"]], [["start", "--room=a", "--room=a"]]])(
  "[CLI15] a flag that is given twice is refused, because only one value would count: %o",
  (words) => {
    const settings = { room: { parse: list, meaning: "" } };
    expect(() => readSettings(settings, { flags: parseCommandLine(words).flags, env: {} })).toThrow(
      "--room is given twice. Give it once; a list is one value with commas",
    );
  },
);

test("[CLI16] a repeatable flag, or the words for it, may be given several times", () => {
  const settings = { room: { parse: single, isRepeatable: true, meaning: "" } } as const;
  const { flags } = parseCommandLine(["export", "--room", "a", "--room=b", "--room", "c"]);
  expect(flags).toEqual({ room: ["a", "b", "c"] });
  expect(readSettings(settings, { flags, env: {} })).toEqual({ room: ["a", "b", "c"] });
  expect(subjectOf(["a", "b"], {}, { name: "export", subject: "room", settings })).toEqual({ room: ["a", "b"] });
});
