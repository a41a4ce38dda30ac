/**
 * Reads a board once over HTTP: its first places, and then the own place in the same window. The server resolves names
 * such as `last-week`, so that a wrong clock of this device reads no other window.
 */

import type { RoomId, Seq } from "../../shared/ids.ts";
import type { BoardPlace, BoardRole, BoardWindow } from "../../shared/wire/boards.ts";
import type { FetchJson, JsonAnswer } from "../ports.ts";
import { errorOf, isNothingCounted, unreadableBoard } from "./board-answers.ts";
import { type RankedUser, rankedUsers } from "./room-boards.ts";

/** The hour, day, ISO week, month or year before the current one, in UTC. */
export type PastWindow = "last-hour" | "last-day" | "last-week" | "last-month" | "last-year";

/** Which board to read, and how much of it. */
export type BoardReadOptions = {
  /** A window that has ended, or its id: `2026-07-01T12`, `2026-07-01`, `2026-W27`, `2026-07` or `2026`. Also a current window. */
  readonly window: PastWindow | BoardWindow | (string & {});
  /** Default: `everyone`. */
  readonly role?: BoardRole | undefined;
  /** Number of places, an integer from 1. The server shows at most 100. Default: 10. */
  readonly shown?: number | undefined;
};

/** A board as it was read. It does not change. */
export type BoardReading = {
  /** The users that the board ranks. */
  readonly role: BoardRole;
  /** Id of the window, for example `2026-W27`. Empty if nothing was counted in it. */
  readonly windowId: string;
  /** The first places, at most `shown`. Empty if nothing was counted in the window. */
  readonly ranking: readonly RankedUser[];
  /**
   * This user's own rank and score. Rank 0: no points, or with a score: not known exactly. Undefined: the archive of the
   * window does not name this user.
   */
  readonly own: { readonly rank: number; readonly score: number } | undefined;
  /** Number of users with points. */
  readonly members: number;
  /** The room's edits up to this seq are counted. */
  readonly seq: Seq;
  /** The window has ended and is archived, usually within two minutes: later readings are the same. */
  readonly isFinal: boolean;
};

export type BoardReadPorts = {
  /** The server's HTTP URL, without a slash at its end. */
  readonly server: string;
  readonly token: () => string | Promise<string>;
  readonly fetchJson: FetchJson;
};

/** The parts of the server's answers that are used. `leaderboard/openapi.json` describes them. */
type Page = {
  readonly window: { readonly id: string };
  readonly isArchived: boolean;
  readonly asOf: { readonly seq: Seq };
  readonly members: number;
  readonly ranking: readonly BoardPlace[];
};
type Own = { readonly own: { readonly rank?: number; readonly score: number } };

const NO_POINTS = { rank: 0, score: 0 };

export async function readBoard(
  { server, token, fetchJson }: BoardReadPorts,
  room: RoomId,
  { window, role, shown }: Pick<BoardReadOptions, "window"> & { readonly role: BoardRole; readonly shown: number },
): Promise<BoardReading> {
  const bearer = await token();
  const ask = async (path: string, asked: string): Promise<JsonAnswer> => {
    const query = new URLSearchParams({ window: asked, role });
    try {
      return await fetchJson(`${server}/v1/rooms/${encodeURIComponent(room)}/leaderboard${path}${query}`, bearer);
    } catch (cause) {
      // Any network error. Browsers do not give the reason.
      throw new Error(
        "cannot read the board: the server does not answer. Check the network, and that COROOM_ALLOWED_ORIGINS includes the page's origin",
        { cause },
      );
    }
  };

  const answer = await ask("?", window);
  if (isNothingCounted(answer)) {
    return { role, windowId: "", ranking: [], own: NO_POINTS, members: 0, seq: 0 as Seq, isFinal: false };
  }
  const page = contentOf<Page>(answer);
  return {
    role,
    windowId: page.window.id,
    ranking: rankedUsers(page.ranking, shown),
    own: ownIn(await ask("/me?around=0&", page.window.id)),
    members: page.members,
    seq: page.asOf.seq,
    isFinal: page.isArchived,
  };
}

/** A range of ranks has no `rank`. */
function ownIn(answer: JsonAnswer): BoardReading["own"] {
  if (answer.status === 404 && errorOf(answer) === "not-ranked") return NO_POINTS;
  if (answer.status === 404 && errorOf(answer) === "beyond-archive") return undefined;
  const { rank = 0, score } = contentOf<Own>(answer).own;
  return { rank, score };
}

function contentOf<Content>(answer: JsonAnswer): Content {
  const { status, body } = answer;
  if (status === 200 && typeof body === "object" && body !== null) return body as Content;
  throw unreadableBoard(answer);
}
