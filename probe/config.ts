/** Settings of the probe role. */

import { list, positiveInteger, type Settings, SettingError, text, type Values } from "../shared/settings/settings.ts";
import { parseTenantId } from "../shared/ids.ts";
import { serverAddressOf } from "../client/options.ts";

/** Sustained edits per second that a gateway accepts from one connection by default. */
const EDITS_PER_SECOND_MAX = 10;
/** Maximum presence frames per second that the SDK sends for one client. */
const PRESENCE_PER_SECOND_MAX = 20;

export const probeSettings = {
  probeGatewayUrls: {
    parse: list,
    fallback: [] as readonly string[],
    meaning: "Gateways that the probe connects to (ws://host:port), comma-separated. Empty: the gateway of this process.",
    basic: true,
  },
  probeTenant: { parse: tenant, fallback: "coroom-probe", meaning: "Tenant of the probe's rooms. Use one that no customer has." },
  probeTokenFile: {
    parse: text,
    fallback: "",
    meaning:
      "File with the probe's token, read again before each use. It needs the tenant of the probe and read and write rights for rooms probe-*. Empty: tokens are signed with COROOM_JWT_SECRET.",
  },
  probeRoomsPerKind: {
    parse: positiveInteger,
    fallback: 1,
    meaning: "Number of probe rooms of each kind: small, large, edit-heavy, presence-heavy.",
  },
  probeLargeParticipants: {
    parse: atLeast(2),
    fallback: 55,
    meaning: "Participants in a large probe room. More than COROOM_FLAT_PARTICIPANTS_MAX, so that hierarchical mode is measured.",
  },
  probeEditsPerSecond: { parse: upTo(EDITS_PER_SECOND_MAX), fallback: 1, meaning: "Edits per second of each writer in a probe room." },
  probeHeavyEditsPerSecond: {
    parse: upTo(EDITS_PER_SECOND_MAX),
    fallback: 4,
    meaning: "Edits per second of each writer in an edit-heavy probe room.",
  },
  probePresencePerSecond: {
    parse: upTo(PRESENCE_PER_SECOND_MAX),
    fallback: 2,
    meaning: "Cursor moves per second of each writer in a probe room.",
  },
  probeHeavyPresencePerSecond: {
    parse: upTo(PRESENCE_PER_SECOND_MAX),
    fallback: 10,
    meaning: "Cursor moves per second of each writer in a presence-heavy probe room.",
  },
  probeReconnectMs: {
    parse: positiveInteger,
    fallback: 60_000,
    meaning: "Milliseconds between two reconnects of one silent participant per probe room.",
  },
  probeLateMs: {
    parse: positiveInteger,
    fallback: 10_000,
    meaning: "Milliseconds after which an acknowledged edit that a connected participant has not received counts as late.",
  },
  probeUnsavedEditsMax: {
    parse: positiveInteger,
    fallback: 50,
    meaning: "Maximum number of unacknowledged edits per probe writer. The writer pauses at this number.",
  },
} as const satisfies Settings;

export type ProbeConfig = Values<typeof probeSettings>;
/** The same settings as gateways have. */
export type TokenConfig = { readonly jwtSecret: string; readonly jwtIssuer: string; readonly jwtAudience: string };

/** Throws `SettingError` if the probe cannot start with these settings. */
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
    serverAddressOf(url);
    return true;
  } catch {
    return false; // The message of the error lists the problem.
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

/** `max`: the limit of gateways for one connection. */
function upTo(max: number): (raw: string) => number {
  return (raw) => {
    const value = positiveInteger(raw);
    if (value > max) throw new SettingError(`must be ${max} at most, because gateways limit a connection to this`);
    return value;
  };
}
