/** What participants may show, and how it travels between a gateway and a room's owner. */

import { positiveInteger, type Settings, type Values } from "../../shared/config.ts";

export const presenceSettings = {
  presenceMemberBytesMax: { parse: positiveInteger, fallback: 8_192, meaning: "bytes of all that one participant shows of itself" },
  presenceFieldsMax: { parse: positiveInteger, fallback: 64, meaning: "fields that one participant shows of itself" },
  presenceFlushMs: {
    parse: positiveInteger,
    fallback: 15,
    meaning: "the shortest time between two tellings of what a room's members here show",
  },
  presenceRepeatMs: { parse: positiveInteger, fallback: 500, meaning: "what a room's owner has not confirmed for so long is told again" },
  presenceKeepaliveMs: {
    parse: positiveInteger,
    fallback: 5_000,
    meaning: "how often a quiet room's owner is asked whether it still knows the members here",
  },
  presenceOwnerSilenceMsMax: {
    parse: positiveInteger,
    fallback: 2_000,
    meaning: "an owner that has not confirmed the members for so long is looked for",
  },
  spectatorAfterMs: { parse: positiveInteger, fallback: 60_000, meaning: "a participant without input for so long is a spectator" },
  gatewayHeartbeatMs: { parse: positiveInteger, fallback: 500, meaning: "how often a gateway says that it is alive" },
} as const satisfies Settings;

export type PresenceConfig = Values<typeof presenceSettings>;

/** What each room's presence keeps to. */
export function presenceOptions(config: PresenceConfig) {
  return {
    memberBytesMax: config.presenceMemberBytesMax,
    memberFieldsMax: config.presenceFieldsMax,
    flushMs: config.presenceFlushMs,
    repeatMs: config.presenceRepeatMs,
    keepaliveMs: config.presenceKeepaliveMs,
    ownerSilenceMsMax: config.presenceOwnerSilenceMsMax,
    spectatorAfterMs: config.spectatorAfterMs,
    heartbeatMs: config.gatewayHeartbeatMs,
  };
}
