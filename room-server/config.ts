/** The room server's settings. */

import { positiveInteger, type Settings, SettingError, text, type Values } from "../shared/config.ts";
import { HEARTBEAT_MS_MAX } from "../shared/membership.ts";
import type { RoomServerOptions } from "./room-server.ts";

/** A writer that left a gap is told once in so long. */
const GAP_QUIET_MS = 200;

export const roomServerSettings = {
  roomSecret: {
    parse: secret,
    secret: true,
    fallback: "",
    meaning: "what room servers prove tentative edits with; the same for all of them, at least 32 characters",
  },
  heartbeatMs: {
    parse: heartbeat,
    fallback: 200,
    meaning: "how often a room server says that it is alive, every 1,000 ms or more often; after three missed ones it is taken for dead",
  },
  serverHost: {
    parse: text,
    fallback: "",
    meaning: "the machine that a room server runs on, so that a room's owner and its warm copy stand on two; empty: the machine's name",
  },
  serverZone: {
    parse: text,
    fallback: "",
    meaning: "the zone that a room server runs in, so that a room's owner and its warm copy stand in two",
  },
  serverPool: {
    parse: text,
    fallback: "",
    meaning:
      "rooms that a room server is kept for: those pinned to this pool, or, in the pool dedicated, those too hot for others; empty: all others",
  },
  budgetEditsPerSecond: { parse: positiveInteger, fallback: 10_000, meaning: "edits a second that a room server is meant for" },
  budgetEgressBytesPerSecond: {
    parse: positiveInteger,
    fallback: 50 * 1024 ** 2,
    meaning: "bytes a second that a room server is meant to send",
  },
  budgetMemoryBytes: { parse: positiveInteger, fallback: 2 * 1024 ** 3, meaning: "bytes of memory that a room server is meant to take" },
  roomsMax: { parse: positiveInteger, fallback: 20_000, meaning: "rooms that one room server takes" },
  roomIdleMsMax: { parse: positiveInteger, fallback: 300_000, meaning: "a room without edits and catch-ups for so long is released" },
  unackedEditsMax: {
    parse: positiveInteger,
    fallback: 1_000,
    meaning: "edits of a room that may wait for the log; past it new ones are refused for a moment",
  },
  unackedBytesMax: { parse: positiveInteger, fallback: 8 * 1024 ** 2, meaning: "bytes of a room's edits that may wait for the log" },
  recordBytesMax: {
    parse: positiveInteger,
    fallback: 512 * 1024,
    meaning: "payload bytes that share one record of the log; a larger edit is refused",
  },
  answerBytesMax: { parse: positiveInteger, fallback: 512 * 1024, meaning: "bytes in one message of a catch-up" },
  savingAfterMs: {
    parse: positiveInteger,
    fallback: 100,
    meaning: "an edit that waits longer for the log goes out as tentative, and the room is saving",
  },
  refusingAfterMs: {
    parse: positiveInteger,
    fallback: 10_000,
    meaning: "when an edit has waited so long for the log, new ones are refused",
  },
  refusedRetryMs: { parse: positiveInteger, fallback: 1_000, meaning: "when a refused edit may be sent again" },
  appendAnswerMsMax: { parse: positiveInteger, fallback: 500, meaning: "an append without an answer for so long is sent again" },
  claimMsMax: { parse: positiveInteger, fallback: 10_000, meaning: "a claim that has not fenced the room by then is given up" },
  heldMessagesMax: { parse: positiveInteger, fallback: 1_000, meaning: "gateways' messages of a room that are held while it is claimed" },
  heldBytesMax: { parse: positiveInteger, fallback: 8 * 1024 ** 2, meaning: "bytes of the messages held while a room is claimed" },
  backlogMsMax: { parse: positiveInteger, fallback: 300_000, meaning: "how long a room's edits stay in memory for those who come back" },
  backlogBytesMax: { parse: positiveInteger, fallback: 8 * 1024 ** 2, meaning: "bytes of a room's edits kept in memory" },
  backlogTotalBytesMax: { parse: positiveInteger, fallback: 512 * 1024 ** 2, meaning: "bytes of all rooms' edits kept in memory" },
  dedupeMsMin: {
    parse: positiveInteger,
    fallback: 300_000,
    meaning:
      "how long a silent writer's edits are still known, so that a repeat is not ordered twice; no more than COROOM_CHECKPOINT_CLIENT_MS_MAX",
  },
  dedupeWritersMax: {
    parse: positiveInteger,
    fallback: 20_000,
    meaning: "writers of a room whose edits are known; past it the most silent are forgotten",
  },
  dedupeRunsPerWriterMax: {
    parse: positiveInteger,
    fallback: 32,
    meaning: "stretches of a writer's edits whose exact seqs are known, for the answer to a repeat",
  },
  deferredCatchUpsMax: {
    parse: positiveInteger,
    fallback: 1_000,
    meaning: "catch-ups of a room that wait for an append or for a look at the log",
  },
  logReadsMax: { parse: positiveInteger, fallback: 8, meaning: "catch-ups that read the log at a time; others wait" },
  logReadsWaitingMax: {
    parse: positiveInteger,
    fallback: 1_000,
    meaning: "catch-ups that wait to read the log; past it one gets no answer and is asked again",
  },
  logReadBytesMax: {
    parse: positiveInteger,
    fallback: 16 * 1024 ** 2,
    meaning: "bytes a catch-up reads from the log before a newer snapshot is the better answer",
  },
  beaconMs: { parse: positiveInteger, fallback: 1_000, meaning: "how long after an edit a room tells its head again" },
  beaconsWhenQuiet: { parse: positiveInteger, fallback: 3, meaning: "how often a quiet room tells its head again" },
  presenceParticipantsMax: { parse: positiveInteger, fallback: 2_000, meaning: "participants of a room that others are told of" },
  presenceRoomBytesMax: {
    parse: positiveInteger,
    fallback: 768 * 1024,
    meaning: "bytes of all that a room's participants show; past it what more they show is not taken",
  },
  presenceTickMs: { parse: positiveInteger, fallback: 50, meaning: "the shortest time between two of a room's presence news" },
  presenceGatherMs: { parse: positiveInteger, fallback: 80, meaning: "how long a new owner listens before it tells who is in the room" },
  gatewaySilenceMsMax: {
    parse: positiveInteger,
    fallback: 2_000,
    meaning: "a gateway silent for so long is taken for dead, and its members for gone",
  },
  presenceSilenceMsMax: {
    parse: positiveInteger,
    fallback: 12_000,
    meaning:
      "a gateway that said nothing of its members in a room for so long is asked who is with it; more than two of presenceKeepaliveMs",
  },
  flatParticipantsMax: {
    parse: positiveInteger,
    fallback: 50,
    meaning: "participants up to which a room's presence travels flat; past it, hierarchically",
  },
  flatAgainParticipants: { parse: positiveInteger, fallback: 40, meaning: "participants down to which a hierarchical room stays so" },
  shareDelayMsMin: {
    parse: positiveInteger,
    fallback: 100,
    meaning: "a room server so late holds back the rooms that cost it most, step by step",
  },
  shareCalmMs: {
    parse: positiveInteger,
    fallback: 5_000,
    meaning: "a room server on time for so long, with less than half of that, gives them a step back",
  },
  heldBackCommitMs: {
    parse: positiveInteger,
    fallback: 80,
    meaning: "how long the edits of a room far over its budget gather before they share a record: so much later they are acknowledged",
  },
  modeMsMin: { parse: positiveInteger, fallback: 5_000, meaning: "how long a room stays in a mode at the least" },
  replicasMax: { parse: positiveInteger, fallback: 20_000, meaning: "rooms of other servers that one room server keeps a warm copy of" },
  handOverMsMax: {
    parse: positiveInteger,
    fallback: 20_000,
    meaning: "how long a stopping room server hands its rooms over; what is left then is let go",
  },
  releaseMsMax: { parse: positiveInteger, fallback: 5_000, meaning: "how long a stopping room server waits for its rooms' last appends" },
} as const satisfies Settings;

export type RoomServerConfig = Values<typeof roomServerSettings>;

function heartbeat(raw: string): number {
  const everyMs = positiveInteger(raw);
  if (everyMs > HEARTBEAT_MS_MAX)
    throw new SettingError(
      `must be at most ${HEARTBEAT_MS_MAX}: whoever has just started listens for little longer, and would take a server that it has not heard for dead. On machines that pause for longer than three heartbeats give ${HEARTBEAT_MS_MAX}, and raise COROOM_SERVER_SILENCE_MS_MAX`,
    );
  return everyMs;
}

function secret(raw: string): string {
  if (raw.length < 32) throw new SettingError("must have at least 32 characters");
  return raw;
}

/** What a record holds beside payloads at the most: numbers, client ids and user names of as many edits as may wait. */
const BESIDE_PAYLOAD_BYTES_PER_EDIT = 480;

/** A catch-up's message with the lengths of its parts: the smallest, one small edit, has some 30 bytes. */
const ANSWER_WITH_LENGTHS = 1.05;

/** Throws where it may not, or cannot, be started so. */
export function refuseUnfit(config: RoomServerConfig): void {
  if (config.roomSecret === "")
    throw new SettingError("COROOM_ROOM_SECRET is not set: give all room servers the same secret of at least 32 characters");
  roomHostOptions(config, undefined);
}

/** The settings as the host's parts call them. Refuses limits that NATS's own would break: `maxPayload` bytes a message. */
export function roomHostOptions(config: RoomServerConfig, maxPayload: number | undefined): RoomServerOptions {
  const recordBytes = config.recordBytesMax + config.unackedEditsMax * BESIDE_PAYLOAD_BYTES_PER_EDIT;
  if (maxPayload !== undefined && recordBytes > maxPayload) {
    throw new SettingError(
      `a record may have ${recordBytes} bytes, more than NATS takes (max_payload ${maxPayload}): raise max_payload, or lower COROOM_RECORD_BYTES_MAX or COROOM_UNACKED_EDITS_MAX`,
    );
  }
  if (maxPayload !== undefined && config.answerBytesMax * ANSWER_WITH_LENGTHS > maxPayload) {
    throw new SettingError(
      `a catch-up's message may have ${config.answerBytesMax} bytes, more than NATS takes (max_payload ${maxPayload}): raise max_payload, or lower COROOM_ANSWER_BYTES_MAX`,
    );
  }
  if (maxPayload !== undefined && config.presenceRoomBytesMax * ANSWER_WITH_LENGTHS > maxPayload) {
    throw new SettingError(
      `a room's presence may have ${config.presenceRoomBytesMax} bytes, more than NATS takes (max_payload ${maxPayload}): raise max_payload, or lower COROOM_PRESENCE_ROOM_BYTES_MAX`,
    );
  }
  if (config.flatAgainParticipants >= config.flatParticipantsMax)
    throw new SettingError(
      "COROOM_FLAT_AGAIN_PARTICIPANTS must be below COROOM_FLAT_PARTICIPANTS_MAX: else a room would switch with every one who comes or goes",
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
