import { expect, test } from "vitest";
import {
  constant,
  envName,
  flag,
  flagName,
  port,
  positiveInteger,
  readableSettings,
  readSettings,
  SettingError,
  text,
  wholeNumber,
} from "./settings.ts";

const settings = {
  natsUrl: { parse: text, meaning: "where the bus listens" },
  limit: { parse: positiveInteger, fallback: 7, meaning: "how many" },
} as const;

test("[CFG1] a setting is read from its flag, else its variable, else its default", () => {
  expect(readSettings(settings, { flags: { natsUrl: "nats://flag" }, env: { COROOM_NATS_URL: "nats://env" } })).toEqual({
    natsUrl: "nats://flag",
    limit: 7,
  });
  expect(readSettings(settings, { flags: {}, env: { COROOM_NATS_URL: "nats://env", COROOM_LIMIT: "9" } })).toEqual({
    natsUrl: "nats://env",
    limit: 9,
  });
});

test("[CFG2] all problems are reported together, each with its variable", () => {
  const read = () => readSettings(settings, { flags: {}, env: { COROOM_LIMIT: "-1" } });
  expect(read).toThrow(SettingError);
  expect(read).toThrow(/COROOM_NATS_URL is not set[\s\S]*COROOM_LIMIT=-1 must be a positive whole number/);
});

test("[CFG3] the name of a setting determines its variable and its flag", () => {
  expect(envName("backlogBytesMax")).toBe("COROOM_BACKLOG_BYTES_MAX");
  expect(flagName("backlogBytesMax")).toBe("--backlog-bytes-max");
});

test("[CFG5] an empty flag means the default, and an empty variable counts as absent", () => {
  const each = {
    isOpen: { parse: flag, fallback: false, meaning: "" },
    at: { parse: port, fallback: 8080, meaning: "" },
    limit: { parse: positiveInteger, fallback: 7, meaning: "" },
    pause: { parse: wholeNumber, fallback: 5, meaning: "" },
    name: { parse: text, fallback: "nobody", meaning: "" },
  } as const;
  const defaults = { isOpen: false, at: 8080, limit: 7, pause: 5, name: "nobody" };
  const names = Object.keys(each);
  expect(readSettings(each, { flags: {}, env: Object.fromEntries(names.map((name) => [envName(name), ""])) })).toEqual(defaults);
  expect(readSettings(each, { flags: {}, env: Object.fromEntries(names.map((name) => [envName(name), " "])) })).toEqual(defaults);
  expect(readSettings(each, { flags: { at: "" }, env: { COROOM_AT: "1" } })).toEqual(defaults);
  expect(() => readSettings(settings, { flags: {}, env: { COROOM_NATS_URL: "" } })).toThrow("COROOM_NATS_URL is not set");
});

test("[CFG10] a flag of spaces is refused, whether or not the setting has a default", () => {
  const read = () => readSettings(settings, { flags: { natsUrl: " ", limit: "\t " }, env: { COROOM_NATS_URL: "nats://env" } });
  expect(read).toThrow(/--nats-url contains only spaces\. Give it a value, or leave it out[\s\S]*--limit contains only spaces/);
});

test("[CFG8] a problem names the source of the value: the flag if the value came from a flag", () => {
  expect(() => readSettings(settings, { flags: { natsUrl: "nats://flag", limit: "bogus" }, env: { COROOM_LIMIT: "9" } })).toThrow(
    /--limit=bogus must be a positive whole number/,
  );
});

test("[CFG9] a value of one call is read from its flag only, never from a variable", () => {
  const ofOneCall = {
    host: { parse: text, fallback: "", meaning: "which host", flagOnly: true },
    room: { parse: text, meaning: "which room", flagOnly: true },
  } as const;
  const env = { COROOM_HOST: "0.0.0.0", COROOM_ROOM: "drafts" };
  expect(readSettings(ofOneCall, { flags: { room: "notes" }, env })).toEqual({ host: "", room: "notes" });
  expect(() => readSettings(ofOneCall, { flags: {}, env })).toThrow(/--room is not set: which room/);
});

test("[CFG30] a constant is set by a test's flag, and never by a variable", () => {
  const settings = { settleMs: constant(50) };
  expect(readSettings(settings, { flags: {}, env: { COROOM_SETTLE_MS: "7" } })).toEqual({ settleMs: 50 });
  expect(readSettings(settings, { flags: { settleMs: "7" }, env: {} })).toEqual({ settleMs: 7 });
  expect(readableSettings(settings)).toEqual([]);
});
