/** Settings of boards that leaderboards and gateways share, declared once so that both have the same defaults. */

import { BOARD_ROLES, type BoardRole } from "../wire/boards.ts";
import { list, positiveInteger, type Settings, SettingError, wholeNumber } from "./settings.ts";

/**
 * A kind of activity that an application's backend may report. Its points count on the board of all participants and
 * on the board of the role.
 */
export type BoardKind = { readonly name: string; readonly points: number; readonly role: BoardRole };

/** Names of these kinds. */
export const ACTIVITY_KIND = /^[a-z][a-z0-9-]{0,31}$/;

/** Maximum users of one question that ranks a given set of users among themselves. */
export const RANKED_USERS_MAX = 1_000;
/** Maximum bytes of the JSON body with these users: 128 characters each, of six bytes where JSON escapes them. */
export const RANKED_USERS_BYTES_MAX = 786_432;

const COMMENT: BoardKind = { name: "comment", points: 5, role: "commenters" };

export const boardSettings = {
  boardKinds: {
    parse: kinds,
    fallback: [COMMENT],
    shownAs: `${COMMENT.name}:${COMMENT.points}:${COMMENT.role}`,
    meaning:
      "Kinds of activity that a backend may report, comma-separated: name:points or name:points:role. A role has a board of its own as well.",
    basic: true,
  },
  boardSessionMs: {
    parse: positiveInteger,
    fallback: 300_000,
    meaning:
      "Length of a presence period in milliseconds. A participant with the right to write gets COROOM_BOARD_SESSION_POINTS at most once per period.",
  },
  boardSessionPoints: {
    parse: wholeNumber,
    fallback: 1,
    meaning: "Points for one presence period (COROOM_BOARD_SESSION_MS); 0 disables them.",
  },
  boardWatchMs: {
    parse: positiveInteger,
    fallback: 30_000,
    meaning: "Milliseconds after which a subscription to a board expires unless the gateway renews it.",
  },
} as const satisfies Settings;

/** Limits scores to below 2^53: at a million points a minute that takes 17,000 years. */
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
      throw new SettingError("must be entries such as comment:5:commenters, with names of lower-case letters, digits and -");
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
