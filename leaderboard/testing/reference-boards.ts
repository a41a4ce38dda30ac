/**
 * A simple reference for tests. It calculates boards from the full list of activities, without batches and without
 * Redis. The real boards must equal its result.
 */

import type { Activity } from "../../shared/bus/activity.ts";
import type { UnixMillis, UserId } from "../../shared/ids.ts";
import type { MemberRole } from "../boards/keys.ts";
import type { ScoringOptions } from "../counting/scoring.ts";

/** One edit of the log; `time` never decreases. */
export type LoggedEdit = { readonly user: UserId; readonly bytes: number; readonly time: UnixMillis };
/** One entry of the stream of activities. */
export type ReportedActivity = { readonly activity: Activity; readonly time: UnixMillis };

type Place = { readonly member: string; readonly score: number; readonly at: Done["at"] };
/** `at`: the time, then the index in its stream, then the stream. */
type Done = {
  readonly user: UserId;
  readonly points: number;
  readonly cap: string;
  readonly capMax: number;
  readonly roles: readonly string[];
  readonly time: UnixMillis;
  readonly at: readonly [number, number, number];
};

/** Window id -> all members with points on this role's board, the leader first. */
export function referenceBoards(
  { edits, activities = [] }: { edits: readonly LoggedEdit[]; activities?: readonly ReportedActivity[] },
  options: ScoringOptions,
  role: MemberRole = "everyone",
): Map<string, Place[]> {
  const boards = new Map<string, Map<string, { score: number; at: Done["at"] }>>();
  const used = new Map<string, number>();
  for (const { user, points, cap, capMax, roles, time, at } of [...editsDone(edits, options), ...activitiesDone(activities, options)]) {
    const got = Math.min(points, capMax - (used.get(cap) ?? 0));
    used.set(cap, (used.get(cap) ?? 0) + got);
    if (got === 0 || !roles.includes(role)) continue;
    for (const id of windowIds(time)) {
      const board = boards.get(id) ?? new Map<string, { score: number; at: Done["at"] }>();
      boards.set(id, board);
      const before = board.get(user);
      board.set(user, { score: (before?.score ?? 0) + got, at: before !== undefined && isBefore(at, before.at) ? before.at : at });
    }
  }
  return new Map(
    [...boards].map(([id, board]) => [
      id,
      [...board]
        .sort(([, a], [, b]) => b.score - a.score || (isBefore(a.at, b.at) ? -1 : 1))
        .map(([member, { score, at }]) => ({ member, score, at })),
    ]),
  );
}

/** Window id -> a tenant's people and rooms on the boards of everyone, the leader first. `rooms`: the activities by room id. */
export function referenceTenantBoards(
  rooms: ReadonlyMap<string, { edits: readonly LoggedEdit[]; activities?: readonly ReportedActivity[] }>,
  options: ScoringOptions,
): Map<string, { people: Place[]; rooms: Place[] }> {
  const found = new Map<string, { people: Map<string, Place>; rooms: Map<string, Place> }>();
  for (const [room, done] of rooms) {
    for (const [id, places] of referenceBoards(done, options)) {
      const boards = found.get(id) ?? { people: new Map(), rooms: new Map() };
      found.set(id, boards);
      for (const place of places) {
        addPlace(boards.people, place);
        addPlace(boards.rooms, { ...place, member: room });
      }
    }
  }
  const inOrder = (board: Map<string, Place>): Place[] =>
    [...board.values()].sort(
      (a, b) => b.score - a.score || a.at[0] - b.at[0] || a.at[1] - b.at[1] || a.at[2] - b.at[2] || (a.member < b.member ? 1 : -1),
    );
  return new Map([...found].map(([id, boards]) => [id, { people: inOrder(boards.people), rooms: inOrder(boards.rooms) }]));
}

function addPlace(board: Map<string, Place>, { member, score, at }: Place): void {
  const before = board.get(member);
  const latest = before !== undefined && isBefore(at, before.at) ? before.at : at;
  board.set(member, { member, score: (before?.score ?? 0) + score, at: latest });
}

function* editsDone(edits: readonly LoggedEdit[], options: ScoringOptions): Iterable<Done> {
  for (const [index, { user, bytes, time }] of edits.entries()) {
    yield {
      user,
      points: pointsOf(bytes, options),
      cap: `edit ${Math.floor(time / 60_000)} ${user}`,
      capMax: options.boardPointsPerMinuteMax,
      roles: ["everyone", "editors"],
      time,
      at: [time, index - edits.findIndex((edit) => edit.time === time), 0],
    };
  }
}

function pointsOf(bytes: number, options: ScoringOptions): number {
  if (bytes >= options.boardEditLargeBytesMin) return options.boardEditPointsLarge;
  if (bytes >= options.boardEditMediumBytesMin) return options.boardEditPointsMedium;
  return options.boardEditPointsSmall;
}

function* activitiesDone(activities: readonly ReportedActivity[], options: ScoringOptions): Iterable<Done> {
  let [count, before] = [0, 0];
  for (const { activity, time } of activities) {
    const deeds = activity.kind === "deeds" ? activity.deeds : activity.users.map((user) => ({ user, kind: undefined, times: 1 }));
    for (const { user, kind, times } of deeds) {
      count = time === before ? count + 1 : 0;
      before = time;
      const at: Done["at"] = [time, count, 1];
      const known = options.boardKinds.find(({ name }) => name === kind);
      if (kind === undefined) {
        yield {
          user,
          points: options.boardSessionPoints,
          cap: `present ${Math.floor(time / options.boardSessionMs)} ${user}`,
          capMax: options.boardSessionPoints,
          roles: ["everyone"],
          time,
          at,
        };
      } else {
        yield {
          user,
          points: (known?.points ?? 0) * times,
          cap: `deed ${Math.floor(time / 60_000)} ${user}`,
          capMax: options.boardKindPointsPerMinuteMax,
          roles: ["everyone", known?.role ?? ""],
          time,
          at,
        };
      }
    }
  }
}

function isBefore(a: Done["at"], b: Done["at"]): boolean {
  return (a[0] - b[0] || a[1] - b[1] || a[2] - b[2]) < 0;
}

function windowIds(time: UnixMillis): string[] {
  const iso = new Date(time).toISOString();
  return [iso.slice(0, 13), iso.slice(0, 10), isoWeek(time), iso.slice(0, 7), iso.slice(0, 4), "all"];
}

/** Calculated from the week's Thursday, by counting Thursdays since New Year. */
function isoWeek(time: UnixMillis): string {
  const date = new Date(time);
  while (date.getUTCDay() !== 4) date.setUTCDate(date.getUTCDate() + ([5, 6, 0].includes(date.getUTCDay()) ? -1 : 1));
  const year = date.getUTCFullYear();
  let week = 0;
  for (; date.getUTCFullYear() === year; date.setUTCDate(date.getUTCDate() - 7)) week += 1;
  return `${year}-W${String(week).padStart(2, "0")}`;
}
