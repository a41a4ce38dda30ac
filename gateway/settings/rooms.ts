/** Settings of a room on a gateway: the limits of its edits, and the search for its owner. */

import { constant, positiveInteger, type Settings } from "../../shared/settings/settings.ts";

export const roomSettings = {
  joinMsMax: { parse: positiveInteger, fallback: 10_000, meaning: "Milliseconds that a join waits for an owner of the room." },
  ownerSilenceMsMax: {
    parse: positiveInteger,
    fallback: 1_000,
    meaning: "Milliseconds without an answer from the owner after which the gateway resends the request or searches for the owner.",
  },
  ownerSearchesMax: {
    parse: positiveInteger,
    fallback: 256,
    meaning: "Maximum number of concurrent searches for room owners. Further searches wait.",
  },
  /** For each application: rooms whose first content is requested, waits for its turn, or failed in the last two seconds. */
  firstContentsMax: constant(1_000),
  /** Concurrent requests for first content. They share the connections to a document service (64) with document reads. */
  firstContentRequestsMax: constant(32),
  /** The same for one application, so that a slow one does not hold the requests to others. */
  firstContentRequestsPerApplicationMax: constant(8),
  /** For each application: edits over HTTP that wait for a room's first content, each with its body. */
  firstContentEditsMax: constant(64),
  forwardedEditsPerRoomMax: {
    parse: positiveInteger,
    fallback: 2_000,
    meaning: "Maximum number of unacknowledged edits per room that a gateway holds.",
  },
  forwardedBytesPerRoomMax: {
    parse: positiveInteger,
    fallback: 8_388_608,
    meaning: "Maximum bytes of unacknowledged edits per room that a gateway holds.",
  },
  forwardedBytesMax: {
    parse: positiveInteger,
    fallback: 134_217_728,
    meaning: "Maximum bytes of unacknowledged edits that a gateway holds.",
  },
  /** Messages to owners per second that the active rooms of a gateway share, each of few bytes. */
  forwardsPerSecond: constant(1_000),
  /** Smallest share of a room. A room over its share gathers its edits for at most 1000 / this many milliseconds. */
  roomForwardsPerSecondMin: constant(25),
  forwardedKeptMs: {
    parse: positiveInteger,
    fallback: 240_000,
    meaning:
      "Milliseconds that a gateway holds unacknowledged edits of a client that left. This value, COROOM_BACKBONE_LOSS_MS_MAX and 10 s must add up to less than COROOM_DEDUPE_MS_MIN.",
  },
  /** Maximum bytes per room that a gateway buffers behind a gap while the gap is repaired. */
  gapBytesMax: constant(4_194_304),
  recentBytesMax: {
    parse: positiveInteger,
    fallback: 1_048_576,
    meaning: "Bytes of recent edits per room that a gateway keeps, so that joins need no request to the owner.",
  },
  /** Milliseconds that a gateway keeps a room's recent edits. */
  recentMsMax: constant(10_000),
  /** Milliseconds that a gateway stays subscribed to a room without members. */
  roomLingerMs: constant(5_000),
} as const satisfies Settings;
