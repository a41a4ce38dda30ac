/** What a gateway holds of each room, and how it finds the owner. */

import { positiveInteger, type Settings } from "../../shared/config.ts";

export const roomSettings = {
  joinMsMax: { parse: positiveInteger, fallback: 10_000, meaning: "time a join waits for an owner of the room" },
  ownerSilenceMsMax: {
    parse: positiveInteger,
    fallback: 1_000,
    meaning: "an edit or a question unanswered for so long is sent again or sends the gateway looking for the owner",
  },
  ownerSearchesMax: {
    parse: positiveInteger,
    fallback: 256,
    meaning: "questions for rooms' owners that are under way at a time, to placement and to room servers; others wait",
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
} as const satisfies Settings;
