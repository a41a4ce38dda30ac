/** Settings of presence: limits of participants, and messages between a gateway and a room's owner. */

import { constant, positiveInteger, type Settings, type Values } from "../../shared/settings/settings.ts";

export const presenceSettings = {
  presenceMemberBytesMax: { parse: positiveInteger, fallback: 8_192, meaning: "Maximum bytes of the presence fields of one participant." },
  presenceFieldsMax: { parse: positiveInteger, fallback: 64, meaning: "Maximum number of presence fields of one participant." },
  /** Minimum milliseconds between two presence messages of a gateway for one room. */
  presenceFlushMs: constant(15),
  /** Milliseconds without confirmation after which a gateway resends presence to the owner. */
  presenceRepeatMs: constant(500),
  /** Milliseconds between two messages to the owner of a quiet room that confirm this gateway's members. */
  presenceKeepaliveMs: constant(5_000),
  /** Milliseconds without confirmation of members after which a gateway searches for the owner. */
  presenceOwnerSilenceMsMax: constant(2_000),
  spectatorAfterMs: {
    parse: positiveInteger,
    fallback: 60_000,
    meaning: "Milliseconds without input after which a participant is a spectator.",
  },
  gatewayHeartbeatMs: { parse: positiveInteger, fallback: 500, meaning: "Milliseconds between two heartbeats of a gateway." },
} as const satisfies Settings;

export type PresenceConfig = Values<typeof presenceSettings>;

/** Limits of each room's presence. */
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
