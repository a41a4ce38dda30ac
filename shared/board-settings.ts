/** What leaderboards and gateways both have to know of boards, so that one word for each is said to all of them. */

import { ACTIVITY_KIND } from "./bus/activity.ts";
import { list, positiveInteger, type Settings, SettingError, wholeNumber } from "./config.ts";
import { BOARD_ROLES, type BoardRole } from "./wire/boards.ts";

/** A kind of activity that an application's backend may tell: points for each time, for everyone's board and for the role's. */
export type BoardKind = { readonly name: string; readonly points: number; readonly role: BoardRole };

const COMMENT: BoardKind = { name: "comment", points: 5, role: "commenters" };

export const boardSettings = {
  boardKinds: {
    parse: kinds,
    fallback: [COMMENT],
    shownAs: `${COMMENT.name}:${COMMENT.points}:${COMMENT.role}`,
    meaning:
      "kinds of activity that a backend may tell of, each as name:points or name:points:role, comma-separated; the role's board counts it beside everyone's",
  },
  boardSessionMs: {
    parse: positiveInteger,
    fallback: 300_000,
    meaning: "whoever may write in a room and is there gets points once in so long",
  },
  boardSessionPoints: { parse: wholeNumber, fallback: 1, meaning: "points for being there so long; 0: none" },
  boardWatchMs: { parse: positiveInteger, fallback: 30_000, meaning: "a gateway that looks at a board says so again within so long" },
} as const satisfies Settings;

/** So that no score reaches 2^53: a million a minute takes it seventeen thousand years. */
const POINTS_MAX = 1_000_000;

export function points(raw: string): number {
  const value = positiveInteger(raw);
  if (value > POINTS_MAX) throw new SettingError(`must be at most ${POINTS_MAX}`);
  return value;
}

function kinds(raw: string): readonly BoardKind[] {
  const named = list(raw).map((entry) => {
    const [name = "", worth = "", role = "everyone", ...rest] = entry.split(":");
    if (!ACTIVITY_KIND.test(name) || rest.length > 0) {
      throw new SettingError("must be like comment:5:commenters, with names of small letters, digits and -");
    }
    if (!isRole(role)) throw new SettingError(`must name a role out of ${Object.keys(BOARD_ROLES).join(", ")}`);
    return { name, points: points(worth), role };
  });
  if (new Set(named.map(({ name }) => name)).size < named.length) throw new SettingError("must name each kind once");
  return named;
}

function isRole(text: string): text is BoardRole {
  return Object.hasOwn(BOARD_ROLES, text);
}
