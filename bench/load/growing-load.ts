/**
 * The load of a room that grows and shrinks. The first two participants edit and the first few move their cursors all
 * the time, while others join and leave. Each client keeps its own list of participants, and the time of each edit to
 * each client is measured.
 */

import type { ClientId } from "../../shared/ids.ts";
import type { RoomMode } from "../../shared/wire/frames.ts";
import { Latencies, type LatencyPairs } from "../../cli/bench/latencies.ts";
import { paced } from "../../cli/bench/paced.ts";
import type { Seat } from "./enter.ts";
import { openAll } from "./open-all.ts";
import { PING_MS, PresenceRoom, type EditReceipt } from "./presence-room.ts";
import { until } from "./until.ts";
import { serveCalls } from "./worker.ts";

export type GrowingLoad = typeof functions;
type GrowthMotion = { readonly editsPerSecond: number; readonly movers: number; readonly movesPerSecond: number };
/**
 * `settledMs`: from the last join or leave until every list is right. Then the edits' latencies until then and at rest.
 */
export type GrowthStage = { readonly settledMs: number; readonly meanwhile: LatencyPairs; readonly resting: LatencyPairs };
type GrowthFigures = {
  /** Modes that each of the two permanent participants received. */
  readonly modes: readonly (readonly RoomMode[])[];
  /** Latencies of edits sent within a second of a change of mode. */
  readonly atSwitches: LatencyPairs;
  readonly edits: number;
};

const EDITORS = 2;
const SETTLED_MS_MAX = 60_000;
const NEAR_SWITCH_MS = 1_000;
/** Rate of joins and of leaves. */
const COMING_PER_SECOND = 250;
/** Movements and edits are scheduled in intervals of this length. */
const SPELL_MS = 200;

let room: PresenceRoom;
let isStopped = false;
let acting: Promise<void> = Promise.resolve();
let stage = new Latencies();
/** Latencies of each edit's deliveries, by the time of its sending. */
const bySending = new Map<number, Latencies>();

const functions = {
  open: async ({ seats, motion }: { seats: readonly Seat[]; motion: GrowthMotion }): Promise<void> => {
    room = new PresenceRoom(seats, "everybody");
    room.onReceipt = receive;
    setInterval(() => room.ping(), PING_MS).unref();
    await openAll(room.participants);
    await listsAreRight();
    acting = act(motion);
  },
  /** Brings the room to this size: missing participants join, or the last ones leave. */
  become: async ({ seats, restMs }: { seats: readonly Seat[]; restMs: number }): Promise<GrowthStage> => {
    const meanwhile = (stage = new Latencies());
    await leaveDownTo(seats.length);
    await comeUpTo(seats);
    const started = performance.now();
    await listsAreRight();
    const settledMs = performance.now() - started;
    const resting = (stage = new Latencies());
    await paced(0, restMs, () => {});
    await listsAreRight();
    return { settledMs, meanwhile: meanwhile.toPairs(), resting: resting.toPairs() };
  },
  /** Resolves when the first two participants have received this many modes. */
  untilModes: async (count: number): Promise<void> => {
    await until(`the first two have received ${count} modes`, () => first().every(({ modes }) => modes.length >= count), SETTLED_MS_MAX);
    await listsAreRight();
  },
  finish: async (): Promise<GrowthFigures> => {
    isStopped = true;
    await acting;
    await until("every participant has every edit", () => room.isSettled, SETTLED_MS_MAX);
    const atSwitches = new Latencies();
    const switches = first()[0]!.modes.slice(1);
    for (const [sentAt, latencies] of bySending)
      if (switches.some(({ at }) => Math.abs(sentAt - at) < NEAR_SWITCH_MS)) atSwitches.add(latencies);
    const grown = { modes: first().map(({ modes }) => modes.map(({ mode }) => mode)), atSwitches: atSwitches.toPairs(), edits: room.sent };
    for (const participant of room.participants) participant.close();
    return grown;
  },
};

async function comeUpTo(seats: readonly Seat[]): Promise<void> {
  const coming = room.add(seats.slice(room.participants.length));
  const opened: Promise<void>[] = [];
  await paced(COMING_PER_SECOND, (coming.length * 1000) / COMING_PER_SECOND, (turn) => void opened.push(coming[turn]!.open()));
  await Promise.all(opened);
}

async function leaveDownTo(count: number): Promise<void> {
  const leaving = room.participants.length - count;
  await paced(COMING_PER_SECOND, (Math.max(0, leaving) * 1000) / COMING_PER_SECOND, () => room.participants.pop()!.close());
}

async function act({ editsPerSecond, movers, movesPerSecond }: GrowthMotion): Promise<void> {
  while (!isStopped) {
    await Promise.all([
      paced(EDITORS * editsPerSecond, SPELL_MS, (turn) => room.participants[turn % EDITORS]!.edit()),
      paced(movers * movesPerSecond, SPELL_MS, (turn) => {
        const mover = room.participants[turn % movers];
        if (mover?.client !== undefined) mover.point();
      }),
    ]);
  }
}

function receive({ by, sentAt, at, own }: EditReceipt): void {
  if (own || sentAt < by.joinedAt) return; // An edit sent before the join arrives as catch-up.
  stage.record(at - sentAt);
  const edit = bySending.get(sentAt) ?? new Latencies();
  bySending.set(sentAt, edit);
  edit.record(at - sentAt);
}

function first() {
  return room.participants.slice(0, EDITORS);
}

/** Waits until every client lists exactly the participants. */
function listsAreRight(): Promise<void> {
  const isRight = (): boolean => {
    const clients = room.participants.map(({ client }) => client);
    if (clients.includes(undefined)) return false;
    const numbers = (clients as ClientId[]).map((client) => room.numbers.get(client));
    if (numbers.includes(undefined)) return false;
    const there = new Set(numbers as number[]);
    return room.participants.every((participant) => participant.lists(there));
  };
  return until(`every list names exactly the ${room.participants.length} participants`, isRight, SETTLED_MS_MAX);
}

serveCalls(functions);
