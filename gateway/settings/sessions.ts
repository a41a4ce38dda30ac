/** What one connection may send and have sent, and when it counts as gone. */

import { positiveInteger, type Settings, type Values } from "../../shared/config.ts";
import type { Limits } from "../../shared/wire/frames.ts";
import { SpareRates } from "../limits/connection-rates.ts";
import type { SessionOptions } from "../sessions/session.ts";
import type { AdmissionConfig } from "./admission.ts";
import type { PresenceConfig } from "./presence.ts";

export const sessionSettings = {
  roomsPerConnectionMax: { parse: positiveInteger, fallback: 100, meaning: "rooms joined over one connection" },
  frameBytesMax: { parse: positiveInteger, fallback: 786_432, meaning: "largest frame taken from a client" },
  editBytesMax: { parse: positiveInteger, fallback: 524_288, meaning: "largest payload of one edit" },
  editBurst: { parse: positiveInteger, fallback: 30, meaning: "edits that one connection may send at once" },
  editsPerSecond: { parse: positiveInteger, fallback: 10, meaning: "edits that one connection may send in the long run" },
  resendBurst: {
    parse: positiveInteger,
    fallback: 1_000,
    meaning: "edits that one connection may send again at once, after a reconnect or a refusal",
  },
  resendsPerSecond: { parse: positiveInteger, fallback: 50, meaning: "edits that one connection may send again in the long run" },
  bytesBurst: {
    parse: positiveInteger,
    fallback: 16_777_216,
    meaning:
      "bytes that one connection may send at once; at least COROOM_EDIT_BURST edits of COROOM_EDIT_BYTES_MAX, or honest clients may meet it",
  },
  bytesPerSecond: {
    parse: positiveInteger,
    fallback: 6_291_456,
    meaning:
      "bytes that one connection may send in the long run; at least COROOM_EDITS_PER_SECOND edits of COROOM_EDIT_BYTES_MAX, or honest clients may meet it",
  },
  catchUpBytesBurst: {
    parse: positiveInteger,
    fallback: 268_435_456,
    meaning:
      "bytes of rooms' past edits that one connection may have itself sent at once, by joining and by asking for a replay; what is past it closes the connection at its next such question",
  },
  catchUpBytesPerSecond: {
    parse: positiveInteger,
    fallback: 8_388_608,
    meaning: "bytes of rooms' past edits that one connection may have itself sent in the long run",
  },
  controlBurst: { parse: positiveInteger, fallback: 300, meaning: "frames other than edits that one connection may send at once" },
  controlsPerSecond: {
    parse: positiveInteger,
    fallback: 20,
    meaning: "frames other than edits that one connection may send in the long run",
  },
  presenceBurst: { parse: positiveInteger, fallback: 60, meaning: "frames of presence that one connection may send at once" },
  presencePerSecondMax: {
    parse: positiveInteger,
    fallback: 30,
    meaning: "frames of presence that one connection may send in the long run; one that sends four times as many is closed",
  },
  boardsPerConnectionMax: { parse: positiveInteger, fallback: 20, meaning: "boards that one connection may watch" },
  pingIntervalMs: { parse: positiveInteger, fallback: 30_000, meaning: "how often a client is to ping" },
  silenceMsMax: { parse: positiveInteger, fallback: 75_000, meaning: "a connection silent for so long is closed" },
} as const satisfies Settings;

export type SessionConfig = Values<typeof sessionSettings>;
type ConnectionConfig = SessionConfig &
  Pick<AdmissionConfig, "helloMsMax" | "retryAfterMs"> &
  Pick<PresenceConfig, "presenceMemberBytesMax" | "presenceFieldsMax">;

/** What WELCOME tells. */
function toldLimits(config: ConnectionConfig): Limits {
  const { pingIntervalMs, silenceMsMax, frameBytesMax, editBytesMax, editBurst, editsPerSecond, bytesBurst, bytesPerSecond } = config;
  const { presenceBurst, presencePerSecondMax, presenceMemberBytesMax, presenceFieldsMax, controlBurst, controlsPerSecond } = config;
  return {
    pingIntervalMs,
    silenceMsMax,
    frameBytesMax,
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

/** What each connection keeps to. */
export function sessionOptions(
  config: ConnectionConfig,
  { clientIdOf, restrictionOn }: Pick<SessionOptions, "clientIdOf" | "restrictionOn">,
): SessionOptions {
  return {
    limits: toldLimits(config),
    helloMsMax: config.helloMsMax,
    roomsMax: config.roomsPerConnectionMax,
    retryAfterMs: config.retryAfterMs,
    rates: new SpareRates({
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
