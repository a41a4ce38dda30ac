/** The room server's settings. */

import { constant, positiveInteger, type Settings, SettingError, type Values } from "../shared/settings/settings.ts";
import { LABEL_LENGTH_MAX } from "../shared/ids.ts";
import { HEARTBEAT_MS_MAX } from "../shared/cluster/membership.ts";
import type { RoomServerOptions } from "./room-server.ts";

/** Minimum interval between two answers to a writer whose counters have a gap. */
const GAP_QUIET_MS = 200;

export const roomServerSettings = {
  roomSecret: {
    parse: secret,
    secret: true,
    fallback: "",
    meaning: "Secret that room servers sign tentative edits with. Use the same value on all room servers, at least 32 characters.",
    basic: true,
  },
  heartbeatMs: {
    parse: heartbeat,
    fallback: 200,
    meaning: "Milliseconds between two heartbeats of a room server, at most 1,000. Three missed heartbeats mean that it is dead.",
  },
  serverHost: {
    parse: label,
    fallback: "",
    meaning:
      "Name of the machine that a room server runs on. Placement puts an owner and its replica on different machines. Empty: the host name.",
  },
  serverZone: {
    parse: label,
    fallback: "",
    meaning: "Availability zone of a room server. Placement puts an owner and its replica in different zones.",
    basic: true,
  },
  serverPool: {
    parse: label,
    fallback: "",
    meaning:
      'Pool of a room server. It receives rooms that are pinned to this pool, and hot rooms if the pool is "dedicated". Empty: all other rooms.',
    basic: true,
  },
  budgetEditsPerSecond: { parse: positiveInteger, fallback: 10_000, meaning: "Edits per second that a room server is sized for." },
  budgetEgressBytesPerSecond: {
    parse: positiveInteger,
    fallback: 50 * 1024 ** 2,
    meaning: "Outgoing bytes per second that a room server is sized for.",
  },
  budgetMemoryBytes: { parse: positiveInteger, fallback: 2 * 1024 ** 3, meaning: "Bytes of memory that a room server is sized for." },
  roomsMax: { parse: positiveInteger, fallback: 20_000, meaning: "Maximum number of rooms per room server." },
  roomIdleMsMax: {
    parse: positiveInteger,
    fallback: 300_000,
    meaning: "Milliseconds without an edit or catch-up after which a room server releases a room.",
  },
  unackedEditsMax: {
    parse: positiveInteger,
    fallback: 1_000,
    meaning: "Maximum number of edits per room that wait for the log. Further edits are refused with WRITE_BACKPRESSURE.",
  },
  unackedBytesMax: { parse: positiveInteger, fallback: 8 * 1024 ** 2, meaning: "Maximum bytes of edits per room that wait for the log." },
  recordBytesMax: {
    parse: positiveInteger,
    fallback: 512 * 1024,
    meaning: "Maximum payload bytes in one log record. Larger edits are refused.",
  },
  answerBytesMax: { parse: positiveInteger, fallback: 512 * 1024, meaning: "Maximum bytes of one catch-up message." },
  savingAfterMs: {
    parse: positiveInteger,
    fallback: 100,
    meaning: 'Milliseconds that an edit waits for the log before it is sent to the room as tentative and the room shows "saving".',
  },
  refusingAfterMs: {
    parse: positiveInteger,
    fallback: 10_000,
    meaning: "Milliseconds that an edit waits for the log before the room refuses new edits.",
  },
  /** Milliseconds after which a client may send a refused edit again. */
  refusedRetryMs: constant(1_000),
  /** Milliseconds without an answer from JetStream after which the same append is sent again. */
  appendAnswerMsMax: constant(500),
  /** Milliseconds after which a claim is abandoned if the log has not accepted its epoch record. */
  claimMsMax: constant(10_000),
  /** Maximum number of gateway messages per room that are buffered during a claim. */
  heldMessagesMax: constant(1_000),
  /** Maximum bytes of gateway messages per room that are buffered during a claim. */
  heldBytesMax: constant(8 * 1024 ** 2),
  backlogMsMax: { parse: positiveInteger, fallback: 300_000, meaning: "Milliseconds that a room's edits stay in the memory backlog." },
  backlogBytesMax: { parse: positiveInteger, fallback: 8 * 1024 ** 2, meaning: "Maximum bytes of one room's memory backlog." },
  backlogTotalBytesMax: {
    parse: positiveInteger,
    fallback: 512 * 1024 ** 2,
    meaning: "Maximum bytes of the memory backlogs of all rooms of a server.",
  },
  dedupeMsMin: {
    parse: positiveInteger,
    fallback: 300_000,
    meaning:
      "Minimum milliseconds that the owner recognises repeated edits of a silent writer. Must be at most COROOM_CHECKPOINT_CLIENT_MS_MAX.",
  },
  dedupeWritersMax: {
    parse: positiveInteger,
    fallback: 20_000,
    meaning: "Maximum number of writers per room in the dedupe window. Writers that have been silent longest are removed first.",
  },
  /** Maximum number of runs of consecutive edits per writer whose exact seqs are kept to answer repeats. */
  dedupeRunsPerWriterMax: constant(32),
  /** Maximum number of catch-ups per room that wait for an append or a log read. */
  deferredCatchUpsMax: constant(1_000),
  logReadsMax: {
    parse: positiveInteger,
    fallback: 8,
    meaning: "Maximum number of concurrent catch-ups that read the log. Further catch-ups wait.",
  },
  /** Maximum number of catch-ups that wait to read the log. Further ones get no answer, and the gateway asks again. */
  logReadsWaitingMax: constant(1_000),
  logReadBytesMax: {
    parse: positiveInteger,
    fallback: 16 * 1024 ** 2,
    meaning: "Maximum bytes that one catch-up reads from the log. Beyond it the client must fetch the snapshot (resync).",
  },
  /** Milliseconds between two announcements of a room's head (epoch and last seq) after an edit. */
  beaconMs: constant(1_000),
  /** Number of times that a quiet room repeats the announcement of its head. */
  beaconsWhenQuiet: constant(3),
  presenceParticipantsMax: { parse: positiveInteger, fallback: 2_000, meaning: "Maximum number of participants per room in presence." },
  presenceRoomBytesMax: {
    parse: positiveInteger,
    fallback: 768 * 1024,
    meaning: "Maximum bytes of all presence fields of one room. Further fields are not accepted.",
  },
  presenceTickMs: { parse: positiveInteger, fallback: 50, meaning: "Minimum milliseconds between two presence deltas of a room." },
  presenceGatherMs: {
    parse: positiveInteger,
    fallback: 80,
    meaning: "Milliseconds that a new owner collects members from the gateways before it publishes the list of participants.",
  },
  gatewaySilenceMsMax: {
    parse: positiveInteger,
    fallback: 2_000,
    meaning: "Milliseconds without a heartbeat after which a gateway counts as dead and its members leave.",
  },
  /**
   * Milliseconds without a message about a gateway's members after which the owner requests them. Must be more than twice
   * `presenceKeepaliveMs` of gateways.
   */
  presenceSilenceMsMax: constant(12_000),
  flatParticipantsMax: {
    parse: positiveInteger,
    fallback: 50,
    meaning: "Maximum number of participants in flat mode. Larger rooms use hierarchical fan-out.",
  },
  flatAgainParticipants: {
    parse: positiveInteger,
    fallback: 40,
    meaning: "Number of participants at which a hierarchical room returns to flat mode.",
  },
  shareDelayMsMin: {
    parse: positiveInteger,
    fallback: 100,
    meaning: "Event loop delay in milliseconds above which a room server throttles, step by step, the rooms that cost it most.",
  },
  /** Milliseconds below half of `shareDelayMsMin` after which one slowdown step is removed. */
  shareCalmMs: constant(5_000),
  /** Milliseconds that edits of a room far over its budget are collected into one log record. Acks are later by as much. */
  heldBackCommitMs: constant(80),
  modeMsMin: { parse: positiveInteger, fallback: 5_000, meaning: "Minimum milliseconds between two mode transitions of a room." },
  replicasMax: { parse: positiveInteger, fallback: 20_000, meaning: "Maximum number of replicas per room server." },
  handOverMsMax: {
    parse: positiveInteger,
    fallback: 20_000,
    meaning: "Milliseconds that a stopping room server hands over its rooms. It releases the remaining rooms afterwards.",
  },
  releaseMsMax: {
    parse: positiveInteger,
    fallback: 5_000,
    meaning: "Milliseconds that a stopping room server waits for the last appends of its rooms.",
  },
} as const satisfies Settings;

export type RoomServerConfig = Values<typeof roomServerSettings>;

function heartbeat(raw: string): number {
  const everyMs = positiveInteger(raw);
  if (everyMs > HEARTBEAT_MS_MAX)
    throw new SettingError(
      `must be at most ${HEARTBEAT_MS_MAX}: a process that has just started listens only slightly longer, and would consider a silent server dead. If machines pause for longer than three heartbeats, set ${HEARTBEAT_MS_MAX} and raise COROOM_SERVER_SILENCE_MS_MAX`,
    );
  return everyMs;
}

/** Text for a label of the heartbeat. */
function label(raw: string): string {
  if (raw.length > LABEL_LENGTH_MAX) throw new SettingError(`must have at most ${LABEL_LENGTH_MAX} characters`);
  return raw;
}

function secret(raw: string): string {
  if (raw.length < 32) throw new SettingError("must have at least 32 characters");
  return raw;
}

/** Maximum bytes of a record in addition to payloads: numbers, client ids and user names of the maximum number of waiting edits. */
const BESIDE_PAYLOAD_BYTES_PER_EDIT = 480;

/** Maximum bytes of a catch-up's message, including the lengths of its parts. The smallest part, one small edit, has about 30 bytes. */
const ANSWER_WITH_LENGTHS = 1.05;

/** Throws if the room server cannot be started with these settings. */
export function refuseUnfit(config: RoomServerConfig): void {
  if (config.roomSecret === "")
    throw new SettingError("COROOM_ROOM_SECRET is not set: give all room servers the same secret of at least 32 characters");
  roomHostOptions(config, undefined);
}

/**
 * The settings under the names that the host's parts use. Throws if a message could exceed `maxPayload`, the limit of
 * NATS.
 */
export function roomHostOptions(config: RoomServerConfig, maxPayload: number | undefined): RoomServerOptions {
  const recordBytes = config.recordBytesMax + config.unackedEditsMax * BESIDE_PAYLOAD_BYTES_PER_EDIT;
  if (maxPayload !== undefined && recordBytes > maxPayload) {
    throw new SettingError(
      `a record may have ${recordBytes} bytes, more than NATS accepts (max_payload ${maxPayload}): raise max_payload, or lower COROOM_RECORD_BYTES_MAX or COROOM_UNACKED_EDITS_MAX`,
    );
  }
  if (maxPayload !== undefined && config.answerBytesMax * ANSWER_WITH_LENGTHS > maxPayload) {
    throw new SettingError(
      `a catch-up's message may have ${config.answerBytesMax} bytes, more than NATS accepts (max_payload ${maxPayload}): raise max_payload, or lower COROOM_ANSWER_BYTES_MAX`,
    );
  }
  if (maxPayload !== undefined && config.presenceRoomBytesMax * ANSWER_WITH_LENGTHS > maxPayload) {
    throw new SettingError(
      `a room's presence may have ${config.presenceRoomBytesMax} bytes, more than NATS accepts (max_payload ${maxPayload}): raise max_payload, or lower COROOM_PRESENCE_ROOM_BYTES_MAX`,
    );
  }
  if (config.flatAgainParticipants >= config.flatParticipantsMax)
    throw new SettingError(
      "COROOM_FLAT_AGAIN_PARTICIPANTS must be below COROOM_FLAT_PARTICIPANTS_MAX: otherwise a room switches its mode with every join or leave",
    );
  return {
    ...config,
    labels: { host: config.serverHost, zone: config.serverZone, pool: config.serverPool },
    participantsMax: config.presenceParticipantsMax,
    presenceBytesMax: config.presenceRoomBytesMax,
    gapQuietMs: GAP_QUIET_MS,
    idleMsMax: config.roomIdleMsMax,
    writersMax: config.dedupeWritersMax,
    runsPerWriterMax: config.dedupeRunsPerWriterMax,
  };
}
