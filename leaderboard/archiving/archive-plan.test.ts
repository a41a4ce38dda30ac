import { expect, test } from "vitest";

import type { RoomKey, Seq, TenantId, UnixMillis } from "../../shared/ids.ts";
import { NO_USES, NOTHING_APPLIED } from "../boards/board.ts";
import { parseWindow } from "../boards/windows.ts";
import type { Closing } from "../ports.ts";
import { ArchivePlan } from "./archive-plan.ts";
import type { ArchivingEffect, ArchivingInput, ArchiveWrite } from "./archiving-messages.ts";

const DAY_MS = 86_400_000;
const [ROOM, TENANT, WINDOW] = ["acme.notes" as RoomKey, "acme" as TenantId, parseWindow("2028-12-30")!];
const NOW = (WINDOW.end + 60_000) as UnixMillis;
const OPTIONS = {
  boardRoles: ["everyone"] as const,
  boardArchivedMax: 10,
  boardArchiveGraceMs: 0,
  logPartitions: 1,
  boardCheckpointWritesMax: 4,
};
const [BEFORE_LONG, LONG] = [NOW + 60_000, WINDOW.start + 2 * DAY_MS];
const APPLIED = { ...NOTHING_APPLIED, seq: 1 as Seq };
const MARK = { seq: 0 as Seq, activity: 0, windows: [], revision: 0, isDeleted: false };
const BOARD = { role: "everyone" as const, members: 1, points: 1, standings: [{ member: "ann", score: 1, reachedAt: 1 }] };
const CLOSING: Closing = { room: ROOM, window: WINDOW };

/** A room and a tenant with a point in the window. `outcome`: result of the archive write. */
function answerTo(effect: ArchivingEffect, outcome: ArchiveWrite): ArchivingInput | undefined {
  switch (effect.kind) {
    case "find-closings":
      return { kind: "closings-found", closings: [CLOSING] };
    case "check-closing":
      return { kind: "closing-checked", closing: effect.closing, mark: MARK, stored: { applied: APPLIED, uses: NO_USES } };
    case "read-window":
      return { kind: "window-read", closing: effect.closing, boards: [BOARD] };
    case "confirm":
      return { kind: "confirmed", subject: effect.subject };
    case "write-archive":
      return { kind: "archive-written", closing: effect.closing, outcome };
    case "check-deleted":
      return { kind: "deleted-checked", closing: effect.closing, isDeleted: false };
    case "remove-archive":
      return { kind: "archive-removed", closing: effect.closing };
    case "finish-closing":
      return { kind: "closing-finished", closing: effect.closing };
    case "restore-room":
      return { kind: "room-restored", room: effect.closing.room };
    case "read-progress":
      return { kind: "progress-read", reports: [{ service: "a", through: NOW, totalsSent: NOW, isRebuilding: false }] };
    case "find-closed-tenants":
      return { kind: "closed-tenants-found", closed: [{ tenant: TENANT, window: WINDOW }] };
    case "read-tenant":
      return { kind: "tenant-read", boards: { people: [BOARD], rooms: [BOARD] } };
    case "write-tenant":
      return { kind: "tenant-written", outcome };
    case "finish-tenant":
      return { kind: "tenant-finished" };
    case "archived":
    case "set-room-aside":
      return undefined;
  }
}

/** One look, with each effect answered immediately. `answer` replaces the usual answer. */
function look(
  plan: ArchivePlan,
  answer: (effect: ArchivingEffect) => ArchivingInput | undefined = () => undefined,
  outcome: ArchiveWrite = "written",
) {
  const seen: ArchivingEffect[] = [];
  const inputs: ArchivingInput[] = [{ kind: "look", through: NOW }];
  for (let input = inputs.shift(); input !== undefined; input = inputs.shift()) {
    for (const effect of plan.receiveInput(input, NOW)) {
      seen.push(effect);
      const next = answer(effect) ?? answerTo(effect, outcome);
      if (next !== undefined) inputs.push(next);
    }
  }
  return seen;
}
const planOf = (partition: number, isAside: (room: RoomKey) => boolean = () => false) => new ArchivePlan(partition, OPTIONS, isAside);
const kinds = (effects: readonly ArchivingEffect[]) => effects.map(({ kind }) => kind);

test.each([
  ["written", LONG],
  ["there", BEFORE_LONG],
] as const)("[ARC1] a window whose archive is %s is kept in Redis long or for a minute, a room's and a tenant's", (outcome, until) => {
  const plan = planOf(0);
  const effects = look(plan, () => undefined, outcome);
  expect(effects.flatMap((effect) => ("keepUntil" in effect ? [effect.keepUntil] : []))).toEqual([until, until]);
  expect(effects.flatMap((effect) => (effect.kind === "archived" ? [effect.outcome] : []))).toEqual([outcome, outcome]);
  expect(plan.isIdle).toBe(true);
});

test("[ARC2] any number of windows of rooms aside delays no window of another room", () => {
  const aside = new Set<RoomKey>();
  const rooms = [...Array.from({ length: 1_000 }, (_, index) => `acme.aside${index}` as RoomKey), ROOM];
  const waiting = rooms.map((room) => ({ room, window: WINDOW }));
  const plan = planOf(1, (room) => aside.has(room));
  let archived = 0;
  for (let looks = 0; looks < 20 && archived === 0; looks++) {
    const effects = look(plan, (effect) => {
      if (effect.kind === "set-room-aside") aside.add(effect.room);
      if (effect.kind === "find-closings") return { kind: "closings-found", closings: waiting.slice(0, effect.countMax) };
      if (effect.kind !== "check-closing" || effect.closing.room === ROOM) return undefined;
      return { kind: "closing-undecodable", closing: effect.closing, cause: new Error("it does not decode") };
    });
    archived += effects.filter(({ kind }) => kind === "finish-closing").length;
  }
  expect([archived, aside.size]).toEqual([1, 1_000]);
});

test("[ARC3] an archive is written only after a sentinel that was requested once the boards were read", () => {
  expect(kinds(look(planOf(1)))).toEqual([
    "find-closings",
    "check-closing",
    "read-window",
    "confirm",
    "write-archive",
    "check-deleted",
    "finish-closing",
    "archived",
  ]);
});

test("[ARC4] a room whose checkpoint has more than Redis is restored, and its window is not archived in this look", () => {
  const plan = planOf(1);
  const ahead = { ...MARK, seq: 9 as Seq };
  const effects = look(plan, (effect) =>
    effect.kind === "check-closing"
      ? { kind: "closing-checked", closing: effect.closing, mark: ahead, stored: { applied: APPLIED, uses: NO_USES } }
      : undefined,
  );
  expect(kinds(effects)).toEqual(["find-closings", "check-closing", "archived", "restore-room"]);
  expect(plan.isIdle).toBe(true);
});

test("[ARC5] the archive of a room that was deleted while it was written is removed again", () => {
  const effects = look(planOf(1), (effect) =>
    effect.kind === "check-deleted" ? { kind: "deleted-checked", closing: effect.closing, isDeleted: true } : undefined,
  );
  expect(kinds(effects).slice(-4)).toEqual(["check-deleted", "remove-archive", "finish-closing", "archived"]);
});

test("[ARC6] nothing is archived while the boards are behind", () => {
  expect(planOf(0).receiveInput({ kind: "look", through: undefined }, NOW)).toEqual([]);
});

test("[ARC7] no window of a tenant is closed while a partition rebuilds its boards or has not reported", () => {
  const report = (isRebuilding: boolean) => ({ service: "a", through: NOW, totalsSent: NOW, isRebuilding });
  const endOf = (...reports: (ReturnType<typeof report> | undefined)[]) =>
    look(planOf(0), (effect) => (effect.kind === "read-progress" ? { kind: "progress-read", reports } : undefined)).flatMap((effect) =>
      effect.kind === "find-closed-tenants" ? [effect.endedBefore] : [],
    );
  expect(endOf(report(false), report(false))).toEqual([NOW]);
  expect(endOf(report(false), report(true))).toEqual([0]);
  expect(endOf(undefined, report(false))).toEqual([0]);
});

test("[ARC8] a window without points is released, and no empty archive is written", () => {
  const answer = (effect: ArchivingEffect): ArchivingInput | undefined => {
    if (effect.kind === "read-window") return { kind: "window-read", closing: effect.closing, boards: [{ ...BOARD, members: 0 }] };
    return effect.kind === "read-tenant" ? { kind: "tenant-read", boards: { people: [], rooms: [] } } : undefined;
  };
  const seen = kinds(look(planOf(0), answer));
  expect(seen.filter((kind) => kind.startsWith("write"))).toEqual([]);
  expect(seen.filter((kind) => kind.startsWith("finish"))).toEqual(["finish-closing", "finish-tenant"]);
});
