/** The gateway's settings by subject. It refuses to start with unsafe combinations of them. */

import { PART_BYTES_MIN } from "../shared/wire/parts.ts";
import { StartError } from "../shared/process/lifecycle.ts";
import { SettingError, type Settings, type Values } from "../shared/settings/settings.ts";
import { MESSAGE_BYTES_MAX } from "./rooms/edit-relay.ts";
import { admissionSettings } from "./settings/admission.ts";
import { gatewayBoardSettings } from "./settings/boards.ts";
import { deliverySettings } from "./settings/delivery.ts";
import { documentSettings } from "./settings/documents.ts";
import { httpSettings } from "./settings/http.ts";
import { listeningSettings } from "./settings/listening.ts";
import { operationsSettings } from "./settings/operations.ts";
import { presenceSettings } from "./settings/presence.ts";
import { quotaSettings } from "./settings/quotas.ts";
import { roomSettings } from "./settings/rooms.ts";
import { sessionSettings } from "./settings/sessions.ts";
import { tokenSettings } from "./settings/tokens.ts";
import { usageSettings } from "./settings/usage.ts";

export const gatewaySettings = {
  ...listeningSettings,
  ...tokenSettings,
  ...admissionSettings,
  ...quotaSettings,
  ...sessionSettings,
  ...deliverySettings,
  ...roomSettings,
  ...presenceSettings,
  ...httpSettings,
  ...documentSettings,
  ...gatewayBoardSettings,
  ...operationsSettings,
  ...usageSettings,
} as const satisfies Settings;

export type GatewayConfig = Values<typeof gatewaySettings>;

export const SECRET_BYTES_MIN = 32;

/** Throws one error that lists every unsafe setting with its remedy. */
export function refuseUnsafeGateway(config: GatewayConfig): void {
  const rules = [...unsafeTokenKeys(config), ...unsafeLimits(config), ...(config.production ? unsafeInProduction(config) : [])];
  const problems = problemsOf(rules);
  if (problems.length > 0) throw new SettingError(`bad configuration:\n  ${problems.join("\n  ")}`);
}

/** Whether the settings break a rule, and the text that says so and how to repair it. */
type Rule = readonly [isBroken: boolean, problem: string];

function problemsOf(rules: readonly Rule[]): string[] {
  return rules.filter(([isBroken]) => isBroken).map(([, problem]) => problem);
}

function unsafeTokenKeys({ jwtSecret, jwtSecretPrevious, jwksUrl, jwksFile }: GatewayConfig): Rule[] {
  const keys = [jwtSecret, jwksUrl, jwksFile].filter((key) => key !== "");
  const tooShort = (name: string, secret: string): Rule => [
    secret !== "" && isShort(secret),
    `${name} is too short: give at least ${SECRET_BYTES_MIN} random bytes`,
  ];
  return [
    [keys.length === 0, "no key to check tokens with: set COROOM_JWT_SECRET, COROOM_JWKS_URL or COROOM_JWKS_FILE"],
    [keys.length > 1, "several keys to check tokens with: set one of COROOM_JWT_SECRET, COROOM_JWKS_URL and COROOM_JWKS_FILE"],
    tooShort("COROOM_JWT_SECRET", jwtSecret),
    tooShort("COROOM_JWT_SECRET_PREVIOUS", jwtSecretPrevious),
    [
      jwtSecretPrevious !== "" && jwtSecret === "",
      "COROOM_JWT_SECRET_PREVIOUS is accepted only beside COROOM_JWT_SECRET: set COROOM_JWT_SECRET, or remove it",
    ],
  ];
}

function unsafeLimits(config: GatewayConfig): Rule[] {
  return [
    [
      config.editBytesMax >= config.frameBytesMax,
      "COROOM_FRAME_BYTES_MAX must be above COROOM_EDIT_BYTES_MAX: a frame carries more than the edit's payload",
    ],
    [
      config.messageBytesMax < 2 * PART_BYTES_MIN,
      `COROOM_MESSAGE_BYTES_MAX must be at least ${2 * PART_BYTES_MIN}: a part of a frame has at least ${PART_BYTES_MIN} bytes`,
    ],
    [
      config.partialBytesMax < 2 * config.frameBytesMax,
      "COROOM_PARTIAL_BYTES_MAX must be at least twice COROOM_FRAME_BYTES_MAX: otherwise another client's unfinished frames can end each large one",
    ],
    [
      config.bodiesBytesMax < config.editBytesMax,
      "COROOM_BODIES_BYTES_MAX must be at least COROOM_EDIT_BYTES_MAX: otherwise the body of an allowed edit is always refused",
    ],
    [
      config.bytesBurst < config.frameBytesMax,
      "COROOM_BYTES_BURST must be at least COROOM_FRAME_BYTES_MAX: a client with one larger frame is closed, reconnects and sends it again",
    ],
    [
      config.silenceMsMax < 2 * config.pingIntervalMs,
      "COROOM_SILENCE_MS_MAX must be at least twice COROOM_PING_INTERVAL_MS: otherwise a client that only pings is closed before its ping arrives",
    ],
  ];
}

function unsafeInProduction(config: GatewayConfig): Rule[] {
  const { internalSecret, metricsSecret, operatorSecret } = config;
  const hasPublicKeys = config.jwksUrl !== "" || config.jwksFile !== "";
  const others = [internalSecret, metricsSecret, config.jwtSecret, config.jwtSecretPrevious];
  return [
    [
      hasPublicKeys && (config.jwtIssuer === "" || config.jwtAudience === ""),
      "production requires the issuer and the audience of tokens with public keys: set COROOM_JWT_ISSUER and COROOM_JWT_AUDIENCE. Otherwise a token that the same identity provider issued for another service is valid here",
    ],
    [config.allowedOrigins.length === 0, "production requires the list of pages that may connect: set COROOM_ALLOWED_ORIGINS"],
    [
      isShort(internalSecret),
      `production requires a secret shared by the tiers: set COROOM_INTERNAL_SECRET to at least ${SECRET_BYTES_MIN} random bytes`,
    ],
    [
      operatorSecret !== "" && isShort(operatorSecret),
      `production requires an operator secret that nobody guesses: set COROOM_OPERATOR_SECRET to at least ${SECRET_BYTES_MIN} random bytes`,
    ],
    [
      operatorSecret !== "" && others.includes(operatorSecret),
      "production requires an operator secret of its own: set COROOM_OPERATOR_SECRET to a value that no other secret has",
    ],
    [
      metricsSecret !== "" && metricsSecret === internalSecret,
      "production requires a metrics secret of its own: set COROOM_METRICS_SECRET to another value than COROOM_INTERNAL_SECRET",
    ],
  ];
}

function isShort(secret: string): boolean {
  return new TextEncoder().encode(secret).length < SECRET_BYTES_MIN;
}

/** Bytes of a message to a room's owner without the payload of its one edit. */
const BESIDE_PAYLOAD_BYTES = 1_024;

/** Bytes of a presence field without its value: its name and lengths. Doubled, because removed fields are sent too. */
const BESIDE_FIELD_BYTES = 2 * 200;

/**
 * Refuses limits for edits, batches of edits and presence that exceed `maxPayload`, the bytes that NATS carries in a
 * message.
 */
export function refuseUnsendable(
  { editBytesMax, presenceMemberBytesMax, presenceFieldsMax }: GatewayConfig,
  maxPayload = Number.POSITIVE_INFINITY,
): void {
  const shownBytes = presenceMemberBytesMax + presenceFieldsMax * BESIDE_FIELD_BYTES;
  const problems = problemsOf([
    [
      editBytesMax + BESIDE_PAYLOAD_BYTES > maxPayload,
      `an edit may have ${editBytesMax} bytes, more than NATS accepts (max_payload ${maxPayload}): raise max_payload, or lower COROOM_EDIT_BYTES_MAX`,
    ],
    [
      MESSAGE_BYTES_MAX + BESIDE_PAYLOAD_BYTES > maxPayload,
      `a batch of edits may have ${MESSAGE_BYTES_MAX} bytes, more than NATS accepts (max_payload ${maxPayload}): raise max_payload to ${MESSAGE_BYTES_MAX + BESIDE_PAYLOAD_BYTES} at least`,
    ],
    [
      shownBytes + BESIDE_PAYLOAD_BYTES > maxPayload,
      `the presence of one participant may have ${shownBytes} bytes with its fields' names, more than NATS accepts (max_payload ${maxPayload}): raise max_payload, or lower COROOM_PRESENCE_MEMBER_BYTES_MAX or COROOM_PRESENCE_FIELDS_MAX`,
    ],
  ]);
  if (problems.length > 0) throw new SettingError(problems.join("\n  "));
}

/** The error for a port that cannot be bound, when the gateway listens and before the services it needs are started. */
export function portTaken({ host, port }: { readonly host: string; readonly port: number }): StartError {
  return new StartError(
    `cannot listen on ${host}:${port}: another process uses the port, or the address does not belong to this machine. Set COROOM_PORT or COROOM_HOST.`,
  );
}
