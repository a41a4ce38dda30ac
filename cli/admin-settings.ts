/** What the commands read that ask a gateway: which one, as whom, and what each is about. */

import { oneOf, positiveInteger, SettingError, type Settings, text, type Values } from "../shared/config.ts";
import { ofOneCall } from "./of-one-call.ts";
import { startSettings } from "./settings.ts";
import { duration } from "./token-settings.ts";

const gateway = {
  url: { parse: gatewayAddress, fallback: "http://127.0.0.1:8080", meaning: "a gateway; what it is asked to do reaches all of them" },
  token: { parse: text, secret: true, fallback: "", meaning: "a token with the right admin; empty: the operator's secret is used" },
  internalSecret: { ...startSettings.internalSecret, meaning: "the operator's secret; empty: that of the local system" },
  dataDir: startSettings.dataDir,
} as const satisfies Settings;
const whose = { tenant: { parse: text, fallback: "default", meaning: "the tenant it is about" } } as const satisfies Settings;
const who = {
  user: { parse: text, fallback: "", meaning: "id of the user" },
  room: { parse: text, fallback: "", meaning: "only in this room; empty: everywhere" },
  ...whose,
} as const satisfies Settings;
const address = { parse: text, fallback: "", meaning: "an IP address, instead of a user; it is banned from everywhere" } as const;
const reason = { parse: text, fallback: "", meaning: "what the user is told" } as const;
const howLong = { parse: duration, fallback: 900, meaning: "for how long: 90s, 15m, 1h, 7d" } as const;

/** By command. */
export const adminSettings = {
  "kick": {
    ...ofOneCall({ ...who, connection: { parse: text, fallback: "", meaning: "one connection, as WELCOME names it, instead of a user" } }),
    ...gateway,
  },
  "downgrade": { ...ofOneCall({ ...who, for: howLong, reason }), ...gateway },
  "ban": { ...ofOneCall({ ...who, address, for: howLong, reason }), ...gateway },
  "unban": {
    ...ofOneCall({
      ...who,
      address,
      level: { parse: oneOf("banned", "read-only"), fallback: "banned", meaning: "what to lift: banned or read-only" },
    }),
    ...gateway,
  },
  "bans": gateway,
  "members": { ...ofOneCall({ room: { parse: text, meaning: "the room" }, ...whose }), ...gateway },
  "delete-room": { ...ofOneCall({ room: { parse: text, meaning: "the room, which is gone for good then" }, ...whose }), ...gateway },
  "drain": {
    ...ofOneCall({ drainMs: { parse: positiveInteger, fallback: 60_000, meaning: "how long to wait until everybody has moved" } }),
    ...gateway,
  },
} as const satisfies Record<string, Settings>;

export const opsRoomsSettings = {
  ...ofOneCall({
    tenant: { parse: text, fallback: "", meaning: "only of this tenant; empty: of all, or of the token's" },
    search: { parse: text, fallback: "", meaning: "only those with this in their name" },
    limit: { parse: positiveInteger, fallback: 100, meaning: "how many are listed, those with most participants first" },
  }),
  ...gateway,
} as const satisfies Settings;
export const opsGatewaysSettings = gateway;

export type AdminCommand = keyof typeof adminSettings;
export type Gateway = Values<typeof gateway>;

export function gatewayAddress(raw: string): string {
  if (!URL.canParse(raw) || !["http:", "https:"].includes(new URL(raw).protocol))
    throw new SettingError("must be an address with http:// or https://, such as http://gateway-3:8080");
  return raw;
}
