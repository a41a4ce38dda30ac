/** The leaderboard's settings. */

import { boardSettings, points } from "../shared/settings/board-settings.ts";
import {
  constant,
  list,
  oneOf,
  port,
  positiveInteger,
  type Settings,
  SettingError,
  text,
  type Values,
} from "../shared/settings/settings.ts";
import { redisUrls } from "../shared/settings/redis-address.ts";
import { internalSecretSettings, internalTlsSettings } from "../shared/settings/internal-tls-settings.ts";
import { refuseUnreachableAddress, type ServiceAddress, serviceUrl } from "../shared/settings/service-address.ts";
import { parseRole, type MemberRole } from "./boards/keys.ts";
import { WINDOW_KINDS, type WindowKind } from "./boards/windows.ts";

/**
 * Maximum of `boardShownMax`. A board's hot set has twice as many members. A tenant's board, which receives 500 members at
 * once, is put in order only while it has more members than the hot set and at most 5,000 (`board.lua`).
 */
export const SHOWN_MEMBERS_MAX = 2_000;

export const leaderboardSettings = {
  redisUrl: {
    parse: redisUrls,
    secret: true,
    fallback: "redis://127.0.0.1:6379",
    meaning:
      "Redis server for boards, persistent bans and usage by tenant, or the comma-separated nodes of a Redis Cluster. If it is not set, the role engines starts a local redis-server.",
    basic: true,
  },
  ...internalTlsSettings,
  ...internalSecretSettings,
  boardsHost: {
    parse: text,
    fallback: "127.0.0.1",
    meaning: "Address that the leaderboard's internal HTTP server listens on.",
    basic: true,
  },
  boardsPort: { parse: port, fallback: 0, meaning: "Port of the leaderboard's internal HTTP server; 0 chooses a free port.", basic: true },
  boardsUrl: {
    parse: serviceUrl,
    fallback: "",
    meaning: "URL at which gateways reach the leaderboard. Empty: its listening address and port, which must not be 0.0.0.0.",
    basic: true,
  },
  /** Milliseconds between two announcements of the leaderboard's URL to the gateways. */
  boardsHeartbeatMs: constant(1_000),
  boardsLeaseMs: {
    parse: positiveInteger,
    fallback: 3_000,
    meaning: "Milliseconds after which another leaderboard takes over the log partitions of a silent one.",
  },
  boardsDrainMsMax: {
    parse: positiveInteger,
    fallback: 10_000,
    meaning: "Milliseconds that a stopping leaderboard may spend on checkpoints.",
  },

  ...boardSettings,
  boardRoles: {
    parse: roles,
    fallback: ["everyone"],
    meaning: "Boards of each room, comma-separated: everyone, editors, commenters.",
  },
  boardWindows: {
    parse: windowKinds,
    fallback: WINDOW_KINDS,
    meaning:
      "Windows of the boards that are counted, comma-separated: hour, day, week, month, year, and always all. Each window costs Redis memory for every stored room. The same for all leaderboards.",
  },
  boardShownMax: {
    parse: shownMembers,
    fallback: 100,
    meaning:
      "Number of top members that a board shows. Ranks are exact for twice this number; COROOM_BOARD_TAIL sets how lower ranks are found.",
  },
  boardTail: {
    parse: oneOf("counted", "ordered"),
    fallback: "counted",
    meaning:
      "How a large board ranks members below its exact part: counted (rank as a range) or ordered (exact rank, about 120 bytes per member and board).",
  },
  boardEditPointsSmall: { parse: points, fallback: 1, meaning: "Points for a small edit." },
  boardEditPointsMedium: {
    parse: points,
    fallback: 2,
    meaning: "Points for an edit of at least COROOM_BOARD_EDIT_MEDIUM_BYTES_MIN bytes.",
  },
  boardEditPointsLarge: { parse: points, fallback: 4, meaning: "Points for an edit of at least COROOM_BOARD_EDIT_LARGE_BYTES_MIN bytes." },
  boardEditMediumBytesMin: {
    parse: positiveInteger,
    fallback: 128,
    meaning: "Size in bytes from which an edit gets the points of a medium edit.",
  },
  boardEditLargeBytesMin: {
    parse: positiveInteger,
    fallback: 4_096,
    meaning: "Size in bytes from which an edit gets the points of a large edit.",
  },
  boardPointsPerMinuteMax: {
    parse: points,
    fallback: 60,
    meaning: "Maximum points per participant and minute for edits, so that a key held down does not win a board.",
  },
  boardKindPointsPerMinuteMax: {
    parse: points,
    fallback: 600,
    meaning: "Maximum points per participant and minute for activities that a backend reports.",
  },
  boardActivityBytesMax: {
    parse: positiveInteger,
    fallback: 64 * 1024 ** 2,
    meaning: "Maximum bytes of reported activities per partition that no checkpoint covers. Further reports are refused.",
  },
  boardActivityDedupeMs: {
    parse: positiveInteger,
    fallback: 600_000,
    meaning: "Milliseconds within which activities with the same id count once.",
  },

  boardReadMs: {
    parse: positiveInteger,
    fallback: 1_000,
    meaning:
      "Milliseconds between two reads of new log records by the leaderboard while no board is watched, and between two counts of a room without a watched board. Each count of a room is one Redis script.",
  },
  /** Milliseconds between two reads of new log records while a board is watched. */
  boardWatchedReadMs: constant(30),
  boardBatchMs: {
    parse: positiveInteger,
    fallback: 100,
    meaning:
      "Milliseconds of edits that are counted in one batch while no board is watched. Rooms with a watched board use a quarter of it.",
  },
  /** Maximum number of edits read and not yet counted, over all partitions of a leaderboard. */
  boardPendingEditsMax: constant(50_000),
  boardRoomsMax: {
    parse: positiveInteger,
    fallback: 20_000,
    meaning:
      "Maximum number of rooms in a leaderboard's memory. Beyond half of it, quiet rooms are checkpointed and removed; at the maximum, the leaderboard stops reading the log.",
  },
  /** Maximum number of concurrent checkpoint reads of the leaderboard. */
  boardOpeningsMax: constant(64),
  /** Maximum number of rooms whose boards are written concurrently. */
  boardWritesMax: constant(256),
  boardTotalsMs: {
    parse: positiveInteger,
    fallback: 10_000,
    meaning: "Milliseconds between two updates of a tenant's boards of people and rooms.",
  },
  boardPushMs: { parse: positiveInteger, fallback: 500, meaning: "Minimum milliseconds between two pushes of a watched board." },
  boardWatchesMax: {
    parse: positiveInteger,
    fallback: 20_000,
    meaning:
      "Maximum number of watched boards, of which one tenant has at most three quarters. Further boards are readable, but not pushed: their state is `behind`.",
  },

  boardNamesMax: {
    parse: positiveInteger,
    fallback: 100_000,
    meaning: "Maximum number of user names in a leaderboard's memory. A user in a room takes two: one for the room and one for the tenant.",
  },
  boardNamesPerRoomMax: {
    parse: positiveInteger,
    fallback: 10_000,
    meaning: "Maximum number of user names stored per room. Other users are shown by their ids.",
  },
  /** Maximum number of user names stored for a tenant's board of people. Other users are shown there by their ids. */
  boardNamesPerTenantMax: constant(100_000),

  boardCheckpointMsMax: {
    parse: positiveInteger,
    fallback: 120_000,
    meaning: "Milliseconds until counted edits are in a checkpoint. Less than COROOM_REPLAY_WINDOW_MS.",
  },
  /** Maximum number of checkpoints written, restored or archived concurrently. */
  boardCheckpointWritesMax: constant(8),
  /** Milliseconds after a window's end before it is archived. It must exceed the clock difference between log and leaderboard. */
  boardArchiveGraceMs: constant(60_000),
  boardArchivedMax: {
    parse: positiveInteger,
    fallback: 1_000,
    meaning:
      "Maximum number of members per board that are archived when the board's period (hour, day, …) ends. All boards of a room are archived in one NATS message, so a large value can exceed its size limit.",
  },
  boardArchiveDaysMax: {
    parse: positiveInteger,
    fallback: 400,
    meaning: "Days that closed hours, days and weeks stay in the archive. Months and years stay permanently.",
  },

  boardReadMembersMax: {
    parse: positiveInteger,
    fallback: 2_000,
    meaning: "Maximum number of members of a board that is read completely to find a rank. Larger boards answer with a rank range.",
  },
  boardBehindMsMax: {
    parse: positiveInteger,
    fallback: 5_000,
    meaning: "Milliseconds of delay after which a board reports that it is behind.",
  },
} as const satisfies Settings;

export type LeaderboardConfig = Values<typeof leaderboardSettings>;

/** Throws if the leaderboard lacks a secret, or an address that gateways can reach. */
export function refuseUnfit(config: LeaderboardConfig): void {
  if (config.internalSecret === "") {
    throw new SettingError(
      "the leaderboard has no secret to check requests with. Set COROOM_INTERNAL_SECRET to the value that the gateways have.",
    );
  }
  refuseUnreachableAddress(boardsAddress(config));
}

export function boardsAddress({ boardsHost, boardsUrl }: LeaderboardConfig): ServiceAddress {
  return { host: boardsHost, url: boardsUrl, urlSetting: "COROOM_BOARDS_URL" };
}

/** Maximum packed bytes of a member in an archived window: 128 characters, each different from the one before. */
export const ARCHIVED_MEMBER_BYTES = 340;
/** Bytes of an archived window without its members. */
const BESIDE_MEMBERS_BYTES = 4_096;

/**
 * Rejects a maximum of archived members that may exceed `maxPayload`, the maximum bytes of a NATS message. A window
 * that cannot be written would end each pass, and its partition would be counted again and again.
 */
export function refuseUnarchivable(
  { boardArchivedMax, boardRoles }: Pick<LeaderboardConfig, "boardArchivedMax" | "boardRoles">,
  maxPayload: number | undefined,
): void {
  if (maxPayload === undefined) return;
  const membersMax = Math.floor((maxPayload - BESIDE_MEMBERS_BYTES) / ARCHIVED_MEMBER_BYTES / boardRoles.length);
  if (boardArchivedMax > membersMax) {
    throw new SettingError(
      `cannot archive ${boardArchivedMax} members of each board: a NATS message holds at most ${membersMax} members of each of ${boardRoles.length} boards (max_payload ${maxPayload}). Raise max_payload, or lower COROOM_BOARD_ARCHIVED_MAX.`,
    );
  }
}

function shownMembers(raw: string): number {
  const value = Number(raw);
  if (!Number.isSafeInteger(value) || value < 1 || value > SHOWN_MEMBERS_MAX) {
    throw new SettingError(`must be a whole number, 1 to ${SHOWN_MEMBERS_MAX}`);
  }
  return value;
}

function roles(raw: string): readonly MemberRole[] {
  return list(raw).map((name) => {
    const role = parseRole(name);
    if (role === undefined) throw new SettingError("must name everyone, editors or commenters");
    return role;
  });
}

/** Shortest first. Readers who name no window read all time, so it is always counted. */
function windowKinds(raw: string): readonly WindowKind[] {
  const names = list(raw);
  if (!names.includes("all") || !names.every((name) => WINDOW_KINDS.some((kind) => kind === name)))
    throw new SettingError("must name windows, among them all: hour, day, week, month, year, all");
  return WINDOW_KINDS.filter((kind) => names.includes(kind));
}
