/** The leaderboard's settings. */

import { boardSettings, points } from "../shared/board-settings.ts";
import { list, oneOf, port, positiveInteger, type Settings, SettingError, text, type Values } from "../shared/config.ts";
import { redisUrls } from "../shared/redis-address.ts";
import { refuseNowhere, type ServiceAddress, serviceUrl } from "../shared/service-address.ts";
import { parseRole, type Role } from "./boards/keys.ts";

export const leaderboardSettings = {
  redisUrl: {
    parse: redisUrls,
    secret: true,
    fallback: "redis://127.0.0.1:6379",
    meaning:
      "the Redis that boards are kept in, as redis://user:password@host:port/number; rediss:// over TLS; several of a Redis Cluster, comma-separated",
  },
  internalSecret: {
    parse: text,
    secret: true,
    fallback: "",
    meaning: "what the tiers show each other over HTTP; the same for all of them",
  },
  boardsHost: { parse: text, fallback: "127.0.0.1", meaning: "address that the leaderboard's internal HTTP listens on" },
  boardsPort: { parse: port, fallback: 0, meaning: "port of the leaderboard's internal HTTP; 0: any free one" },
  boardsUrl: {
    parse: serviceUrl,
    fallback: "",
    meaning: "where gateways reach that HTTP; empty: the address and port it listens on, which must not be 0.0.0.0 then",
  },
  boardsHeartbeatMs: { parse: positiveInteger, fallback: 1_000, meaning: "how often a leaderboard tells the gateways where it is" },
  boardsLeaseMs: {
    parse: positiveInteger,
    fallback: 3_000,
    meaning: "another leaderboard takes over a part of the log whose counter was silent for so long",
  },
  boardsDrainMsMax: {
    parse: positiveInteger,
    fallback: 10_000,
    meaning: "how long a stopping leaderboard may take to checkpoint what it has counted",
  },

  ...boardSettings,
  boardRoles: { parse: roles, fallback: ["everyone"], meaning: "boards kept of each room: everyone, editors, commenters" },
  boardShownMax: {
    parse: positiveInteger,
    fallback: 100,
    meaning: "members of a board that are shown at once, and pushed; twice as many stand in exact order",
  },
  boardTail: {
    parse: oneOf("counted", "ordered"),
    fallback: "counted",
    meaning:
      "members behind the first ones of a long board: counted, with a rank as a range, or ordered, with exact ranks, pages and neighbours for about 120 bytes each and board",
  },
  boardEditPointsSmall: { parse: points, fallback: 1, meaning: "points for an edit" },
  boardEditPointsMedium: { parse: points, fallback: 2, meaning: "points for an edit of boardEditMediumBytesMin or more" },
  boardEditPointsLarge: { parse: points, fallback: 4, meaning: "points for an edit of boardEditLargeBytesMin or more" },
  boardEditMediumBytesMin: { parse: positiveInteger, fallback: 128, meaning: "from how many bytes on an edit is medium" },
  boardEditLargeBytesMin: { parse: positiveInteger, fallback: 4_096, meaning: "from how many bytes on an edit is large" },
  boardPointsPerMinuteMax: {
    parse: points,
    fallback: 60,
    meaning: "points that a participant gets for edits in a minute at most, so that holding a key down does not win",
  },
  boardKindPointsPerMinuteMax: {
    parse: points,
    fallback: 600,
    meaning: "points that a participant gets in a minute at most for what a backend tells of",
  },
  boardActivityBytesMax: {
    parse: positiveInteger,
    fallback: 64 * 1024 ** 2,
    meaning: "bytes of activities told and in no checkpoint yet, of each part of the log; past it no more are taken",
  },
  boardActivityDedupeMs: {
    parse: positiveInteger,
    fallback: 600_000,
    meaning: "activities told again under the same id within so long count once",
  },

  boardReadMs: { parse: positiveInteger, fallback: 250, meaning: "how often a leaderboard reads what is new in the log" },
  boardWatchedReadMs: { parse: positiveInteger, fallback: 30, meaning: "the same while somebody watches a board" },
  boardBatchMs: {
    parse: positiveInteger,
    fallback: 100,
    meaning: "edits of so long are counted together; of rooms whose boards are watched, of a quarter of it",
  },
  boardPendingEditsMax: {
    parse: positiveInteger,
    fallback: 50_000,
    meaning:
      "edits read and not yet counted, of all parts of the log that a leaderboard counts; past its share of it a part is not read on",
  },
  boardRoomsMax: {
    parse: positiveInteger,
    fallback: 20_000,
    meaning:
      "rooms known in memory, of all parts of the log that a leaderboard counts, but for those set aside; past half of its share a part has quiet ones checkpointed and forgotten, past all of it it is not read on",
  },
  boardOpeningsMax: { parse: positiveInteger, fallback: 64, meaning: "rooms whose boards are looked up at a time" },
  boardWritesMax: { parse: positiveInteger, fallback: 256, meaning: "rooms whose boards are written at a time" },
  boardTotalsMs: { parse: positiveInteger, fallback: 2_000, meaning: "a tenant's board of its rooms is brought up to date so often" },
  boardPushMs: { parse: positiveInteger, fallback: 500, meaning: "a watched board is pushed no more often" },
  boardWatchesMax: {
    parse: positiveInteger,
    fallback: 20_000,
    meaning: "boards watched at a time; past it new ones are not pushed, only read",
  },

  boardNamesMax: { parse: positiveInteger, fallback: 100_000, meaning: "names of users in memory, so that pushing a board looks none up" },
  boardNamesPerRoomMax: {
    parse: positiveInteger,
    fallback: 10_000,
    meaning: "names of users stored with a room's boards; others are shown by their ids",
  },

  boardCheckpointMsMax: {
    parse: positiveInteger,
    fallback: 120_000,
    meaning: "counted edits are in a checkpoint after so long; less than the log's replay window",
  },
  boardCheckpointWritesMax: { parse: positiveInteger, fallback: 8, meaning: "checkpoints written, restored and archived at a time" },
  boardArchiveGraceMs: {
    parse: positiveInteger,
    fallback: 60_000,
    meaning: "a window is archived so long after its end: more than the clocks of log and leaderboard differ",
  },
  boardArchivedMax: {
    parse: positiveInteger,
    fallback: 1_000,
    meaning: "members of a closed window's board that the archive names; all boards of it are one message to NATS",
  },
  boardArchiveDaysMax: {
    parse: positiveInteger,
    fallback: 400,
    meaning: "how long closed hours, days and weeks are kept in the archive; months and years are kept for good",
  },

  boardReadMembersMax: {
    parse: positiveInteger,
    fallback: 2_000,
    meaning:
      "up to so many members a board is read whole where somebody outside its ordered part is asked about; past it the rank is given as a range",
  },
  boardBehindMsMax: {
    parse: positiveInteger,
    fallback: 5_000,
    meaning: "boards whose counter is silent or late for longer say that they are behind",
  },
} as const satisfies Settings;

export type LeaderboardConfig = Values<typeof leaderboardSettings>;

/** Throws where it may not, or cannot, be started so. */
export function refuseUnfit(config: LeaderboardConfig): void {
  if (config.internalSecret === "") {
    throw new SettingError("the leaderboard answers only who shows a secret: set COROOM_INTERNAL_SECRET, the same as the gateways'");
  }
  refuseNowhere(whereBoardsAre(config));
}

export function whereBoardsAre({ boardsHost, boardsUrl }: LeaderboardConfig): ServiceAddress {
  return { host: boardsHost, url: boardsUrl, urlSetting: "COROOM_BOARDS_URL" };
}

/** What a member takes in an archived window at the most, packed: of its 128 characters each any other than the one before. */
export const ARCHIVED_MEMBER_BYTES = 340;
/** What an archived window holds beside its members. */
const BESIDE_MEMBERS_BYTES = 4_096;

/**
 * Refuses archived windows that NATS might not carry: `maxPayload` bytes a message. One that cannot be written has
 * its part of the log counted anew, again and again.
 */
export function refuseUnarchivable(
  { boardArchivedMax, boardRoles }: Pick<LeaderboardConfig, "boardArchivedMax" | "boardRoles">,
  maxPayload: number | undefined,
): void {
  if (maxPayload === undefined) return;
  const membersMax = Math.floor((maxPayload - BESIDE_MEMBERS_BYTES) / ARCHIVED_MEMBER_BYTES / boardRoles.length);
  if (boardArchivedMax > membersMax) {
    throw new SettingError(
      `the archive may name ${boardArchivedMax} members of each board, and NATS takes no more than ${membersMax} of each of ${boardRoles.length} (max_payload ${maxPayload}): raise max_payload, or lower COROOM_BOARD_ARCHIVED_MAX`,
    );
  }
}

function roles(raw: string): readonly Role[] {
  return list(raw).map((name) => {
    const role = parseRole(name);
    if (role === undefined) throw new SettingError("must name everyone, editors or commenters");
    return role;
  });
}
