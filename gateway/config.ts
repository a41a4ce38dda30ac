/** The gateway's settings, and what production refuses to start with. */

import { boardSettings } from "../shared/board-settings.ts";
import { flag, lowerCase, port, positiveInteger, SettingError, type Settings, text, type Values, wholeNumber } from "../shared/config.ts";
import { origins } from "../shared/origins.ts";
import { MESSAGE_BYTES_MAX } from "./rooms/edit-relay.ts";
import { SpareRates } from "./limits/connection-rates.ts";
import type { SessionOptions } from "./sessions/session.ts";
import type { Limits } from "../shared/wire/frames.ts";
import type { SharedCountsOptions } from "./limits/shared-counts.ts";

export const gatewaySettings = {
  host: { parse: text, fallback: "127.0.0.1", meaning: "address to listen on; 0.0.0.0 for every network" },
  port: { parse: port, fallback: 8080, meaning: "port for WebSocket and HTTP; 0: any free one" },
  tlsCertFile: {
    parse: text,
    fallback: "",
    meaning:
      "a file with the certificate (PEM, with those between it and its root) that WebSocket and HTTP are served over TLS with; empty: plain, for a balancer that ends TLS",
  },
  tlsKeyFile: { parse: text, fallback: "", meaning: "a file with its private key (PEM, without a passphrase)" },
  production: {
    parse: flag,
    fallback: false,
    meaning: "refuse to start with anything open: a token key and the allowed origins must be given",
  },
  allowedOrigins: {
    parse: origins,
    fallback: [],
    meaning: "origins whose pages may connect, such as https://app.example; empty: any, in development only",
  },
  staticDir: { parse: text, fallback: "", meaning: "folder of files served at /; empty: none" },

  jwtSecret: { parse: text, secret: true, fallback: "", meaning: "HS256 secret of the tokens, at least 32 bytes" },
  jwksUrl: {
    parse: keysAddress,
    secret: true,
    fallback: "",
    meaning: "where the public keys of RS256, PS256, ES256 or EdDSA tokens are fetched (JWKS)",
  },
  jwksFile: { parse: text, fallback: "", meaning: "a JWKS file, instead of a URL" },
  jwtIssuer: { parse: text, fallback: "", meaning: "issuer that tokens must name; empty: any" },
  jwtAudience: { parse: text, fallback: "", meaning: "audience that tokens must name; empty: any" },
  jwtClockToleranceSeconds: { parse: positiveInteger, fallback: 5, meaning: "how far the clock of whoever signs tokens may be off" },
  knownTokensMax: {
    parse: positiveInteger,
    fallback: 100_000,
    meaning: "tokens that need not be checked again when they are shown again; of more the oldest is forgotten",
  },
  knownTokenMsMax: {
    parse: wholeNumber,
    fallback: 15_000,
    meaning: "for how long not: so long may a key that was withdrawn still open doors. 0: every token is checked each time",
  },
  waitingTokensMax: {
    parse: positiveInteger,
    fallback: 1_000,
    meaning:
      "tokens of no known key that wait for the JWKS to be fetched again, which takes three seconds; whoever shows more is told to try again",
  },
  internalSecret: {
    parse: text,
    secret: true,
    fallback: "",
    meaning: "what the tiers show each other over HTTP; the same for all of them",
  },

  connectionsMax: { parse: positiveInteger, fallback: 50_000, meaning: "connections to one gateway; more are turned away with HTTP 503" },
  connectsPerSecondMax: {
    parse: positiveInteger,
    fallback: 500,
    meaning: "new connections to one gateway in a second; more wait for their turn",
  },
  connectQueueMax: {
    parse: wholeNumber,
    fallback: 1_000,
    meaning: "connections that wait for their turn; more are closed with a hint to come back later",
  },
  connectQueueBytesMax: {
    parse: positiveInteger,
    fallback: 16_777_216,
    meaning:
      "bytes that all of them together may have said meanwhile, a frame 200 more than it has; whoever says more is closed with the same hint",
  },
  retryAfterMs: {
    parse: positiveInteger,
    fallback: 5_000,
    meaning: "what clients are told to wait that are turned away or were too fast; each waits up to twice as long, at random",
  },
  connectionsPerIpMax: {
    parse: positiveInteger,
    fallback: 100,
    meaning:
      "connections from one address (IPv6: one /64) to all gateways; more are turned away with HTTP 429. The machine's own addresses are not counted",
  },
  clientAddressHeader: {
    parse: lowerCase,
    fallback: "",
    meaning:
      "header in which the balancer names the client's address as its last entry, such as x-forwarded-for; empty: the socket's own address. Set it only behind a balancer that sets it",
  },
  connectionsPerTenantMax: {
    parse: positiveInteger,
    fallback: 50_000,
    meaning: "connections of one tenant to all gateways; more are closed with a hint to come back later",
  },
  roomsPerTenantMax: {
    parse: positiveInteger,
    fallback: 10_000,
    meaning: "open rooms of one tenant; joins that would open another are refused with a hint to come back later",
  },
  participantsPerRoomMax: {
    parse: positiveInteger,
    fallback: 1_000,
    meaning: "members of one room over all gateways; more joins are refused with a hint to come back later",
  },
  tenantEditsPerSecondMax: {
    parse: positiveInteger,
    fallback: 5_000,
    meaning: "edits that one tenant may send over all gateways in a second; more are refused with a hint to send them later",
  },
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
  ownerSearchesMax: {
    parse: positiveInteger,
    fallback: 256,
    meaning: "questions for rooms' owners that are under way at a time, to placement and to room servers; others wait",
  },
  controlBurst: { parse: positiveInteger, fallback: 300, meaning: "frames other than edits that one connection may send at once" },
  controlsPerSecond: {
    parse: positiveInteger,
    fallback: 20,
    meaning: "frames other than edits that one connection may send in the long run",
  },
  abusePointsMax: {
    parse: positiveInteger,
    fallback: 100,
    meaning: "points of a user or an address over all gateways, within a minute or so, that lead to a ban; half as many to being held off",
  },
  tenantAbusePointsMax: {
    parse: positiveInteger,
    fallback: 5_000,
    meaning: "points of all users of a tenant together; more than half as many, and its new connections are held off",
  },
  abuseBanMs: {
    parse: positiveInteger,
    fallback: 60_000,
    meaning: "the first ban for abuse; each further one within a day is twice as long",
  },
  abuseBanMsMax: { parse: positiveInteger, fallback: 3_600_000, meaning: "the longest ban for abuse" },
  suspectsMax: { parse: positiveInteger, fallback: 100_000, meaning: "users, addresses and tenants watched for abuse at once" },
  sanctionsMax: {
    parse: positiveInteger,
    fallback: 10_000,
    meaning: "bans and downgrades held at once; of the tenant that has most, the one that ends first makes room for another",
  },
  snapshotBurst: { parse: positiveInteger, fallback: 20, meaning: "snapshots that one user may fetch from a gateway at once" },
  snapshotsPerSecond: { parse: positiveInteger, fallback: 2, meaning: "snapshots that one user may fetch from a gateway in the long run" },
  snapshotSharedMs: {
    parse: wholeNumber,
    fallback: 1_000,
    meaning:
      "a snapshot is fetched once for all who ask for it within so long, and on while somebody does and nothing has come in its room; what came since follows as edits. 0: only while it is being fetched",
  },
  snapshotSharedBytesMax: {
    parse: positiveInteger,
    fallback: 134_217_728,
    meaning: "bytes of snapshots held for that, or still on their way to whoever asked, at most; larger ones are fetched for each who asks",
  },
  streamedAnswersMax: {
    parse: positiveInteger,
    fallback: 64,
    meaning:
      "answers about documents that are not held in memory and are on their way to whoever asked, each over a connection to the document service",
  },
  streamedAnswersPerUserMax: { parse: positiveInteger, fallback: 8, meaning: "those of one user" },
  documentWriteBurst: {
    parse: positiveInteger,
    fallback: 100,
    meaning: "edits and documents that one user may send to a gateway over HTTP at once",
  },
  documentWritesPerSecond: { parse: positiveInteger, fallback: 20, meaning: "those that one user may send in the long run" },
  writesMax: {
    parse: positiveInteger,
    fallback: 1_000,
    meaning: "edits over HTTP that wait for the log at one gateway; more are refused with a hint to come back",
  },
  writeMsMax: {
    parse: positiveInteger,
    fallback: 10_000,
    meaning: "an edit over HTTP that is not in the log by then is answered with 504: the same request again finds out",
  },
  answerStallMsMax: {
    parse: positiveInteger,
    fallback: 60_000,
    meaning: "an answer over HTTP of which nothing was taken for so long is given up",
  },
  gatewaySnapshotBurst: {
    parse: positiveInteger,
    fallback: 4_000,
    meaning: "snapshots that all users together may fetch from a gateway at once",
  },
  gatewaySnapshotsPerSecond: {
    parse: positiveInteger,
    fallback: 1_000,
    meaning: "snapshots that all users together may fetch from a gateway in the long run",
  },
  boardReadBurst: {
    parse: positiveInteger,
    fallback: 20,
    meaning: "questions about boards that one user may ask a gateway at once over HTTP",
  },
  boardReadsPerSecond: {
    parse: positiveInteger,
    fallback: 5,
    meaning: "questions about boards that one user may ask a gateway over HTTP in the long run",
  },
  boardsPerConnectionMax: { parse: positiveInteger, fallback: 20, meaning: "boards that one connection may watch" },
  ...boardSettings,
  activityBurst: { parse: positiveInteger, fallback: 100, meaning: "times that one backend may tell a gateway of activities at once" },
  activitiesPerSecond: {
    parse: positiveInteger,
    fallback: 50,
    meaning: "times that one backend may tell a gateway of activities in the long run",
  },
  adminReadBurst: {
    parse: positiveInteger,
    fallback: 100,
    meaning:
      "questions of operations consoles that one administrator, or all operators together, may ask a gateway at once; a console asks about two a second",
  },
  adminReadsPerSecond: { parse: positiveInteger, fallback: 30, meaning: "those that they may ask in the long run" },
  helloMsMax: {
    parse: positiveInteger,
    fallback: 10_000,
    meaning: "time a new connection has to say hello, and the gateway then has to check its token",
  },
  joinMsMax: { parse: positiveInteger, fallback: 10_000, meaning: "time a join waits for an owner of the room" },
  pingIntervalMs: { parse: positiveInteger, fallback: 30_000, meaning: "how often a client is to ping" },
  silenceMsMax: { parse: positiveInteger, fallback: 75_000, meaning: "a connection silent for so long is closed" },
  outboundBytesMax: {
    parse: positiveInteger,
    fallback: 16_777_216,
    meaning: "bytes waiting for one client at most; past it the connection is cut",
  },
  behindBytesMax: {
    parse: positiveInteger,
    fallback: 65_536,
    meaning: "a client so many bytes behind is told of no presence until it has taken them; then of all there is",
  },
  slowBytesMax: {
    parse: positiveInteger,
    fallback: 1_048_576,
    meaning: "a client so many bytes behind and not catching up within a second is closed, to resume from its last seq",
  },
  slowMsMax: { parse: positiveInteger, fallback: 1_000, meaning: "so is one that has not taken what it was sent so long ago" },

  outboundP99MsMax: {
    parse: wholeNumber,
    fallback: 500,
    meaning:
      "where what is sent reaches a hundredth of the clients so late, for five seconds, /readyz says so until it is half of that for ten: new clients go elsewhere. 0: never",
  },
  presenceBurst: { parse: positiveInteger, fallback: 60, meaning: "frames of presence that one connection may send at once" },
  presencePerSecondMax: {
    parse: positiveInteger,
    fallback: 30,
    meaning: "frames of presence that one connection may send in the long run; one that sends four times as many is closed",
  },
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

  ownerSilenceMsMax: {
    parse: positiveInteger,
    fallback: 1_000,
    meaning: "an edit or a question unanswered for so long is sent again or sends the gateway looking for the owner",
  },
  forwardedEditsPerRoomMax: { parse: positiveInteger, fallback: 2_000, meaning: "edits of one room held until the log has them" },
  forwardedBytesPerRoomMax: {
    parse: positiveInteger,
    fallback: 8_388_608,
    meaning: "bytes of one room's edits held until the log has them",
  },
  forwardedBytesMax: { parse: positiveInteger, fallback: 134_217_728, meaning: "bytes of all rooms' edits held until the log has them" },
  forwardedKeptMs: { parse: positiveInteger, fallback: 300_000, meaning: "how long edits are held for a client that left" },
  gapBytesMax: { parse: positiveInteger, fallback: 4_194_304, meaning: "bytes of one room held behind a gap while it is repaired" },
  recentBytesMax: {
    parse: positiveInteger,
    fallback: 1_048_576,
    meaning: "newest bytes of one room kept, so that joins meet the live flow without asking the owner again",
  },
  recentMsMax: { parse: positiveInteger, fallback: 10_000, meaning: "how long those are kept" },
  roomLingerMs: { parse: positiveInteger, fallback: 5_000, meaning: "how long a room without members is still followed" },
  shedDelayMsMin: { parse: positiveInteger, fallback: 100, meaning: "an event loop so late leaves out presence, step by step" },
  shedOutboundBytesMin: {
    parse: positiveInteger,
    fallback: 268_435_456,
    meaning: "so many bytes that clients have not read leave out presence, step by step",
  },
  shedNatsLagMsMin: { parse: positiveInteger, fallback: 250, meaning: "a NATS so slow leaves out presence, step by step" },
  shedCalmMs: {
    parse: positiveInteger,
    fallback: 5_000,
    meaning: "calm for so long, with less than half of all these, takes back one step",
  },
  drainMsMax: {
    parse: wholeNumber,
    fallback: 30_000,
    meaning: "time that clients have to move to another gateway before this one stops; 0: none, they are closed at once",
  },
  backboneLossMsMax: {
    parse: positiveInteger,
    fallback: 30_000,
    meaning: "after so long without NATS, clients are sent to another gateway",
  },
} as const satisfies Settings;

export type GatewayConfig = Values<typeof gatewaySettings>;

const SECRET_BYTES_MIN = 32;

/** What can be fetched: no address with a user in it. */
function keysAddress(raw: string): string {
  const url = URL.canParse(raw) ? new URL(raw) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== "" || url.password !== "")
    throw new SettingError("must be an address such as https://id.example/.well-known/jwks.json, with no user in it");
  return raw;
}

/** Throws with all that stands in the way of starting, each with its remedy. */
export function refuseUnsafe(config: GatewayConfig): void {
  const problems: string[] = [];
  const keys = [config.jwtSecret, config.jwksUrl, config.jwksFile].filter((key) => key !== "");
  if (keys.length === 0) problems.push("no key to check tokens with: set COROOM_JWT_SECRET, COROOM_JWKS_URL or COROOM_JWKS_FILE");
  if (keys.length > 1)
    problems.push("several keys to check tokens with: set one of COROOM_JWT_SECRET, COROOM_JWKS_URL and COROOM_JWKS_FILE");
  if (config.jwtSecret !== "" && new TextEncoder().encode(config.jwtSecret).length < SECRET_BYTES_MIN) {
    problems.push(`COROOM_JWT_SECRET is too short: give at least ${SECRET_BYTES_MIN} random bytes`);
  }
  if (config.editBytesMax >= config.frameBytesMax)
    problems.push("COROOM_FRAME_BYTES_MAX must be above COROOM_EDIT_BYTES_MAX: a frame carries more than the edit's payload");
  if (config.bytesBurst < config.frameBytesMax)
    problems.push(
      "COROOM_BYTES_BURST must be at least COROOM_FRAME_BYTES_MAX: whoever sends one frame that is larger is closed, comes back and sends it again",
    );
  if (config.silenceMsMax < 2 * config.pingIntervalMs)
    problems.push(
      "COROOM_SILENCE_MS_MAX must be at least twice COROOM_PING_INTERVAL_MS: a client that only pings is closed before its ping comes",
    );
  if (config.production && config.allowedOrigins.length === 0)
    problems.push("in production the pages that may connect must be named: set COROOM_ALLOWED_ORIGINS");
  if (config.production && new TextEncoder().encode(config.internalSecret).length < SECRET_BYTES_MIN)
    problems.push(`in production the tiers must share a secret: set COROOM_INTERNAL_SECRET, of at least ${SECRET_BYTES_MIN} random bytes`);
  if (problems.length > 0) throw new SettingError(`bad configuration:\n  ${problems.join("\n  ")}`);
}

/** What a message to a room's owner holds beside the payload of its one edit. */
const BESIDE_PAYLOAD_BYTES = 1_024;

/** Of a field, beside its value: its name and lengths. As many again may have been taken back. */
const BESIDE_FIELD_BYTES = 2 * 200;

/** Refuses edits, one or several together, and what a participant shows, that NATS would not carry: `maxPayload` bytes a message. */
export function refuseUnsendable(
  { editBytesMax, presenceMemberBytesMax, presenceFieldsMax }: GatewayConfig,
  maxPayload = Number.POSITIVE_INFINITY,
): void {
  const shownBytes = presenceMemberBytesMax + presenceFieldsMax * BESIDE_FIELD_BYTES;
  const problems: string[] = [];
  if (editBytesMax + BESIDE_PAYLOAD_BYTES > maxPayload)
    problems.push(
      `an edit may have ${editBytesMax} bytes, more than NATS takes (max_payload ${maxPayload}): raise max_payload, or lower COROOM_EDIT_BYTES_MAX`,
    );
  if (MESSAGE_BYTES_MAX + BESIDE_PAYLOAD_BYTES > maxPayload)
    problems.push(
      `edits that travel together may have ${MESSAGE_BYTES_MAX} bytes, more than NATS takes (max_payload ${maxPayload}): raise max_payload to ${MESSAGE_BYTES_MAX + BESIDE_PAYLOAD_BYTES} at least`,
    );
  if (shownBytes + BESIDE_PAYLOAD_BYTES > maxPayload)
    problems.push(
      `what one participant shows may have ${shownBytes} bytes with its fields' names, more than NATS takes (max_payload ${maxPayload}): raise max_payload, or lower COROOM_PRESENCE_MEMBER_BYTES_MAX or COROOM_PRESENCE_FIELDS_MAX`,
    );
  if (problems.length > 0) throw new SettingError(problems.join("\n  "));
}

/** What reading documents keeps to. */
export function documentReadOptions({
  internalSecret,
  snapshotBurst,
  snapshotsPerSecond,
  gatewaySnapshotBurst,
  gatewaySnapshotsPerSecond,
  snapshotSharedMs,
  snapshotSharedBytesMax,
  connectionsMax,
}: GatewayConfig) {
  return {
    internalSecret,
    shared: { sharedMs: snapshotSharedMs, bytesMax: snapshotSharedBytesMax },
    eachUser: { burst: snapshotBurst, perSecond: snapshotsPerSecond },
    everybody: { burst: gatewaySnapshotBurst, perSecond: gatewaySnapshotsPerSecond },
    readersMax: connectionsMax,
  };
}

/** What answers that are passed on as they come keep to. */
export function streamedAnswersOptions({ streamedAnswersMax, streamedAnswersPerUserMax }: GatewayConfig) {
  return { eachMax: streamedAnswersPerUserMax, allMax: streamedAnswersMax };
}

/** What writing documents keeps to. */
export function documentWriteOptions({
  internalSecret,
  documentWriteBurst,
  documentWritesPerSecond,
  editBytesMax,
  connectionsMax,
}: GatewayConfig) {
  return {
    internalSecret,
    eachUser: { burst: documentWriteBurst, perSecond: documentWritesPerSecond },
    writersMax: connectionsMax,
    editBytesMax,
  };
}

/** What the boards' HTTP keeps to. */
export function boardRouteOptions({ internalSecret, boardReadBurst, boardReadsPerSecond, connectionsMax }: GatewayConfig) {
  return { internalSecret, boardReads: { burst: boardReadBurst, perSecond: boardReadsPerSecond }, readersMax: connectionsMax };
}

/** What the operations console's questions keep to. */
export function operationsRouteOptions({
  internalSecret,
  adminReadBurst,
  adminReadsPerSecond,
  connectionsMax,
  environment,
}: GatewayConfig & { readonly environment: string }) {
  return { internalSecret, environment, reads: { burst: adminReadBurst, perSecond: adminReadsPerSecond }, readersMax: connectionsMax };
}

/** What telling of activities keeps to. */
export function activityRouteOptions({ boardKinds, activityBurst, activitiesPerSecond, connectionsMax }: GatewayConfig) {
  return {
    kinds: boardKinds.map(({ name }) => name),
    telling: { burst: activityBurst, perSecond: activitiesPerSecond },
    tellersMax: connectionsMax,
  };
}

/** What each room keeps to. */
export function roomOptions(config: GatewayConfig) {
  const {
    joinMsMax,
    ownerSilenceMsMax,
    gapBytesMax,
    recentBytesMax,
    recentMsMax,
    forwardedEditsPerRoomMax,
    forwardedBytesPerRoomMax,
    forwardedKeptMs,
    roomLingerMs,
  } = config;
  return {
    joinMsMax,
    ownerSilenceMsMax,
    gapBytesMax,
    recentBytesMax,
    recentMsMax,
    forwardedEditsPerRoomMax,
    forwardedBytesPerRoomMax,
    forwardedKeptMs,
    roomLingerMs,
  };
}

/** What each room's presence keeps to. */
export function presenceOptions(config: GatewayConfig) {
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

/** Other gateways are told of a count from this part of its limit on: so much may each of them add unseen. */
const COUNT_TOLD_SHARE = 0.02;
/** Three reports may be lost before what they said lapses. */
const COUNT_SILENCE_MS_MAX = 3_500;

/** What connections, rooms and tenants keep to across all gateways. */
export function quotaOptions(config: GatewayConfig): SharedCountsOptions {
  const {
    connectionsPerIpMax,
    connectionsPerTenantMax,
    roomsPerTenantMax,
    participantsPerRoomMax,
    tenantEditsPerSecondMax,
    abusePointsMax,
    tenantAbusePointsMax,
  } = config;
  return {
    limits: {
      "ip": connectionsPerIpMax,
      "tenant": connectionsPerTenantMax,
      "tenant-rooms": roomsPerTenantMax,
      "room": participantsPerRoomMax,
      "tenant-edits": tenantEditsPerSecondMax,
      "user-faults": abusePointsMax,
      "address-faults": abusePointsMax,
      "tenant-faults": tenantAbusePointsMax,
      "full-room": 1,
    },
    toldShare: COUNT_TOLD_SHARE,
    reportSilenceMsMax: COUNT_SILENCE_MS_MAX,
  };
}

/** What WELCOME tells. */
function toldLimits(config: GatewayConfig): Limits {
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
  config: GatewayConfig,
  { clientIdOf, restrictionOn }: Pick<SessionOptions, "clientIdOf" | "restrictionOn">,
): SessionOptions {
  const { editBurst, editsPerSecond, bytesBurst, bytesPerSecond, controlBurst, controlsPerSecond, presenceBurst } = config;
  return {
    limits: toldLimits(config),
    helloMsMax: config.helloMsMax,
    roomsMax: config.roomsPerConnectionMax,
    retryAfterMs: config.retryAfterMs,
    rates: new SpareRates({
      editRates: {
        fresh: { burst: editBurst, perSecond: editsPerSecond },
        repeats: { burst: config.resendBurst, perSecond: config.resendsPerSecond },
      },
      byteRate: { burst: bytesBurst, perSecond: bytesPerSecond },
      catchUpRate: { burst: config.catchUpBytesBurst, perSecond: config.catchUpBytesPerSecond },
      controlRate: { burst: controlBurst, perSecond: controlsPerSecond },
      presenceRate: { burst: presenceBurst, perSecond: config.presencePerSecondMax },
    }),
    clientIdOf,
    restrictionOn,
  };
}
