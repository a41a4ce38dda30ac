/** Settings of the role probe. */

import { addressOf } from "../client/connection/address.ts";
import { list, positiveInteger, type Settings, SettingError, text, type Values } from "../shared/config.ts";
import { parseTenantId } from "../shared/ids.ts";

/** What a gateway takes from one connection in the long run, unless it is set otherwise. */
const EDITS_PER_SECOND_MAX = 10;
/** What the SDK shows of one client in a second at the most. */
const PRESENCE_PER_SECOND_MAX = 20;

export const probeSettings = {
  probeGatewayUrls: {
    parse: list,
    fallback: [] as readonly string[],
    meaning:
      "the gateways that the probe enters rooms at, as clients reach them (ws://host:port), comma-separated: a balancer, or each gateway; empty: the gateway of this process",
  },
  probeTenant: { parse: tenant, fallback: "coroom-probe", meaning: "the tenant whose rooms they are; of no customer's" },
  probeTokenFile: {
    parse: text,
    fallback: "",
    meaning:
      "a file with the token that the probe shows, read again whenever one is due: of that tenant, for rooms probe-*, to read and write; empty: tokens are made with COROOM_JWT_SECRET",
  },
  probeRoomsPerKind: { parse: positiveInteger, fallback: 1, meaning: "rooms of each kind: small, large, edit-heavy, presence-heavy" },
  probeLargeParticipants: {
    parse: atLeast(2),
    fallback: 55,
    meaning: "participants of a large room; more than COROOM_FLAT_PARTICIPANTS_MAX, or its presence travels as in a small one",
  },
  probeEditsPerSecond: { parse: upTo(EDITS_PER_SECOND_MAX), fallback: 1, meaning: "edits that each of a room's pair makes in a second" },
  probeHeavyEditsPerSecond: { parse: upTo(EDITS_PER_SECOND_MAX), fallback: 4, meaning: "the same in edit-heavy rooms" },
  probePresencePerSecond: {
    parse: upTo(PRESENCE_PER_SECOND_MAX),
    fallback: 2,
    meaning: "times a second that each of a room's pair shows its pointer elsewhere",
  },
  probeHeavyPresencePerSecond: { parse: upTo(PRESENCE_PER_SECOND_MAX), fallback: 10, meaning: "the same in presence-heavy rooms" },
  probeReconnectMs: {
    parse: positiveInteger,
    fallback: 60_000,
    meaning: "how often one participant of each room, who neither writes nor is measured otherwise, loses its line and comes back",
  },
  probeLateMs: {
    parse: positiveInteger,
    fallback: 10_000,
    meaning: "an acknowledged edit that somebody whose line stands has not seen after so long counts as late",
  },
  probeUnsavedEditsMax: {
    parse: positiveInteger,
    fallback: 50,
    meaning: "edits of one writer that wait for an acknowledgement; at so many it makes no more until some are acknowledged",
  },
} as const satisfies Settings;

export type ProbeConfig = Values<typeof probeSettings>;
/** As gateways have them. */
export type TokenConfig = { readonly jwtSecret: string; readonly jwtIssuer: string; readonly jwtAudience: string };

/** Throws where it cannot be started so. */
export function refuseUnfit({ probeGatewayUrls, probeTokenFile, jwtSecret }: ProbeConfig & TokenConfig): void {
  const problems = probeGatewayUrls
    .filter((url) => !isAddress(url))
    .map((url) => `COROOM_PROBE_GATEWAY_URLS must name gateways, as ws://host:port or wss://host, not ${JSON.stringify(url)}`);
  if (probeGatewayUrls.length === 0)
    problems.push("COROOM_PROBE_GATEWAY_URLS is not set: the probe enters rooms at gateways, as ws://host:port or wss://host");
  if (jwtSecret === "" && probeTokenFile === "")
    problems.push(
      "the probe needs tokens: set COROOM_JWT_SECRET to what gateways check them with, or COROOM_PROBE_TOKEN_FILE to a file with one",
    );
  if (problems.length > 0) throw new SettingError(problems.join("\n"));
}

function isAddress(url: string): boolean {
  try {
    addressOf(url);
    return true;
  } catch {
    return false; // Says what it is not.
  }
}

function tenant(raw: string): string {
  if (parseTenantId(raw) === undefined) throw new SettingError("must be 1 to 64 letters, digits, _ or -");
  return raw;
}

function atLeast(min: number): (raw: string) => number {
  return (raw) => {
    const value = positiveInteger(raw);
    if (value < min) throw new SettingError(`must be ${min} or more`);
    return value;
  };
}

/** For what gateways let one connection do. */
function upTo(max: number): (raw: string) => number {
  return (raw) => {
    const value = positiveInteger(raw);
    if (value > max) throw new SettingError(`must be ${max} at most: whoever does more is held back`);
    return value;
  };
}
