/** What `coroom token` reads. */

import { list, positiveInteger, SettingError, type Settings, text, type Values } from "../shared/config.ts";
import { ofOneCall } from "./of-one-call.ts";
import { startSettings } from "./settings.ts";

const claims = ofOneCall({
  room: { parse: list, meaning: "rooms the token opens, comma-separated; a trailing * stands for the rest of a name" },
  user: { parse: text, meaning: "id of the user" },
  name: { parse: text, fallback: "", meaning: "name shown to others; the user's id by default" },
  rights: {
    parse: rights,
    fallback: ["read", "write"],
    meaning: "read, write, admin, award, comma-separated; award: to tell of activities that are worth points, for backends",
  },
  tenant: { parse: text, fallback: "default", meaning: "the tenant whose rooms they are" },
  ttl: { parse: duration, fallback: 3600, meaning: "how long it is valid: 90s, 15m, 1h, 7d" },
});

export type TokenClaims = Values<typeof claims>;

export const tokenSettings = {
  ...claims,
  dataDir: startSettings.dataDir,
  jwtSecret: { ...startSettings.jwtSecret, meaning: "HS256 secret of the tokens, at least 32 bytes; empty: that of the local system" },
} as const satisfies Settings;

const RIGHTS = ["read", "write", "admin", "award"];

function rights(raw: string): readonly string[] {
  const named = list(raw);
  if (named.length === 0 || named.some((right) => !RIGHTS.includes(right))) throw new SettingError(`must be out of ${RIGHTS.join(", ")}`);
  return named;
}

/** Seconds. */
export function duration(raw: string): number {
  const match = /^(\d+)([smhd])$/.exec(raw);
  if (match === null) throw new SettingError("must be a number and a unit: 90s, 15m, 1h, 7d");
  return positiveInteger(match[1]!) * { s: 1, m: 60, h: 3600, d: 86_400 }[match[2] as "s" | "m" | "h" | "d"];
}
