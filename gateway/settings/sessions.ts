/** Settings of one connection: its limits in both directions, and when it counts as lost. */

import { positiveInteger, type Settings, type Values } from "../../shared/settings/settings.ts";
import type { Limits } from "../../shared/wire/frames.ts";
import { RatePool } from "../limits/connection-rates.ts";
import type { ClientSessionOptions } from "../sessions/client-session.ts";
import type { AdmissionConfig } from "./admission.ts";
import type { PresenceConfig } from "./presence.ts";

export const sessionSettings = {
  roomsPerConnectionMax: { parse: positiveInteger, fallback: 100, meaning: "Maximum number of joined rooms per connection." },
  messageBytesMax: {
    parse: positiveInteger,
    fallback: 16_384,
    meaning:
      "Maximum bytes of one WebSocket message from a client. Larger frames are sent in parts. An unfinished message uses up to twice this memory, which no other limit counts.",
  },
  frameBytesMax: {
    parse: positiveInteger,
    fallback: 786_432,
    meaning: "Maximum bytes of one frame from a client, all its parts together.",
  },
  partialBytesMax: {
    parse: positiveInteger,
    fallback: 67_108_864,
    meaning:
      "Maximum bytes of all unfinished frames of a gateway. Above it, the gateway takes the tenant with the most of these bytes, and closes a connection of its user with the most. Must be at least twice COROOM_FRAME_BYTES_MAX.",
  },
  editBytesMax: { parse: positiveInteger, fallback: 524_288, meaning: "Maximum payload bytes of one edit." },
  editBurst: { parse: positiveInteger, fallback: 30, meaning: "Number of edits that a connection may send at once." },
  editsPerSecond: { parse: positiveInteger, fallback: 10, meaning: "Maximum sustained edits per second and connection." },
  resendBurst: {
    parse: positiveInteger,
    fallback: 1_000,
    meaning: "Number of edits that a connection may resend at once after a reconnect or a refusal.",
  },
  resendsPerSecond: { parse: positiveInteger, fallback: 50, meaning: "Maximum sustained resent edits per second and connection." },
  bytesBurst: {
    parse: positiveInteger,
    fallback: 16_777_216,
    meaning:
      "Bytes that a connection may send at once. At least COROOM_EDIT_BURST times COROOM_EDIT_BYTES_MAX, or honest clients may exceed it.",
  },
  bytesPerSecond: {
    parse: positiveInteger,
    fallback: 6_291_456,
    meaning:
      "Maximum sustained bytes per second and connection. At least COROOM_EDITS_PER_SECOND times COROOM_EDIT_BYTES_MAX, or honest clients may exceed it.",
  },
  catchUpBytesBurst: {
    parse: positiveInteger,
    fallback: 268_435_456,
    meaning: "Bytes of catch-up that a connection may request at once. The next request beyond it closes the connection.",
  },
  catchUpBytesPerSecond: {
    parse: positiveInteger,
    fallback: 8_388_608,
    meaning: "Maximum sustained bytes of catch-up per second and connection.",
  },
  controlBurst: {
    parse: positiveInteger,
    fallback: 300,
    meaning: "Number of control frames (all but edits and presence) that a connection may send at once.",
  },
  controlsPerSecond: {
    parse: positiveInteger,
    fallback: 20,
    meaning: "Maximum sustained control frames per second and connection.",
  },
  presenceBurst: { parse: positiveInteger, fallback: 60, meaning: "Number of presence frames that a connection may send at once." },
  presencePerSecondMax: {
    parse: positiveInteger,
    fallback: 30,
    meaning: "Maximum sustained presence frames per second and connection. At four times this rate the connection is closed.",
  },
  boardsPerConnectionMax: { parse: positiveInteger, fallback: 20, meaning: "Maximum number of watched boards per connection." },
  pingIntervalMs: { parse: positiveInteger, fallback: 30_000, meaning: "Milliseconds between two pings of a client." },
  silenceMsMax: {
    parse: positiveInteger,
    fallback: 75_000,
    meaning: "Milliseconds without a frame after which a connection is closed. At least twice COROOM_PING_INTERVAL_MS.",
  },
} as const satisfies Settings;

export type SessionConfig = Values<typeof sessionSettings>;
type ConnectionConfig = SessionConfig &
  Pick<AdmissionConfig, "helloMsMax" | "retryAfterMs"> &
  Pick<PresenceConfig, "presenceMemberBytesMax" | "presenceFieldsMax">;

/** The limits that WELCOME announces. */
function announcedLimits(config: ConnectionConfig): Limits {
  const {
    pingIntervalMs,
    silenceMsMax,
    messageBytesMax,
    frameBytesMax,
    editBytesMax,
    editBurst,
    editsPerSecond,
    bytesBurst,
    bytesPerSecond,
  } = config;
  const { presenceBurst, presencePerSecondMax, presenceMemberBytesMax, presenceFieldsMax, controlBurst, controlsPerSecond } = config;
  return {
    pingIntervalMs,
    silenceMsMax,
    frameBytesMax: Math.min(messageBytesMax, frameBytesMax),
    ...(frameBytesMax > messageBytesMax ? { partedFrameBytesMax: frameBytesMax } : {}),
    editBytesMax,
    editBurst,
    editsPerSecond,
    bytesBurst,
    bytesPerSecond,
    presenceBurst,
    presencePerSecond: presencePerSecondMax,
    presenceBytesMax: presenceMemberBytesMax,
    presenceFieldsMax,
    controlBurst,
    controlsPerSecond,
  };
}

/** Limits of each connection. */
export function sessionOptions(
  config: ConnectionConfig,
  { clientIdOf, restrictionOn }: Pick<ClientSessionOptions, "clientIdOf" | "restrictionOn">,
): ClientSessionOptions {
  return {
    limits: announcedLimits(config),
    helloMsMax: config.helloMsMax,
    roomsMax: config.roomsPerConnectionMax,
    retryAfterMs: config.retryAfterMs,
    rates: new RatePool({
      editRates: {
        fresh: { burst: config.editBurst, perSecond: config.editsPerSecond },
        repeats: { burst: config.resendBurst, perSecond: config.resendsPerSecond },
      },
      byteRate: { burst: config.bytesBurst, perSecond: config.bytesPerSecond },
      catchUpRate: { burst: config.catchUpBytesBurst, perSecond: config.catchUpBytesPerSecond },
      controlRate: { burst: config.controlBurst, perSecond: config.controlsPerSecond },
      presenceRate: { burst: config.presenceBurst, perSecond: config.presencePerSecondMax },
    }),
    clientIdOf,
    restrictionOn,
  };
}
