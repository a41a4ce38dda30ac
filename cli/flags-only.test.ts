/** Values that belong to one call of a command are never read from variables. */

import { readFileSync } from "node:fs";

import { expect, test } from "vitest";

import { readSettings, type Settings } from "../shared/settings/settings.ts";
import { commands } from "./commands.ts";
import { startSettings } from "./settings.ts";
import { opsPinSettings } from "./command-settings.ts";

const ofStart: Settings = startSettings;
/** Settings that belong to many calls: the address of the gateway and the token. */
const OF_MANY_CALLS = ["url", "token"];

test.each(commands.map(({ name, settings }) => [name, settings] as const))(
  "[ONE1] coroom %s reads from variables only settings of start, with the same meaning",
  (_, settings) => {
    const strayed = Object.entries(settings).filter(([name, { parse, fallback, flagOnly }]) => {
      const meant = ofStart[name];
      if (meant === undefined) return flagOnly !== true && !OF_MANY_CALLS.includes(name);
      return flagOnly === true || parse !== meant.parse || fallback !== meant.fallback;
    });
    expect(strayed.map(([name]) => name)).toEqual([]);
  },
);

test("[ONE2] inside the image, only the flags decide where a room is pinned", () => {
  const image = readFileSync("deploy/Dockerfile", "utf8").matchAll(/\b(COROOM_\w+)=(\S+)/g);
  const env = Object.fromEntries([...image].map(([, name, value]) => [name!, value!]));
  expect(env).toMatchObject({ COROOM_HOST: "0.0.0.0" });
  expect(readSettings(opsPinSettings, { flags: { room: "notes" }, env })).toMatchObject({ room: "notes", pool: "", onHost: "" });
  expect(readSettings(opsPinSettings, { flags: { room: "notes", onHost: "north" }, env })).toMatchObject({ onHost: "north" });
});
