/** The load of the presence scenarios: rooms whose participants move cursors and edit, at given rates. */

import { Latencies, type LatencyPairs } from "../../cli/bench/latencies.ts";
import { paced } from "../../cli/bench/paced.ts";
import type { Seat } from "./enter.ts";
import { openAll } from "./open-all.ts";
import { type LoadParticipant, PING_MS, PresenceRoom } from "./presence-room.ts";
import { until } from "./until.ts";
import { serveCalls } from "./worker.ts";

export type PresenceLoad = typeof functions;
/**
 * In every room the first participants move and edit. A due edit is left out while its writer has `unackedMax` edits
 * that are not committed.
 */
export type PresenceMotion = {
  readonly ms: number;
  readonly movers: number;
  readonly movesPerSecond: number;
  readonly editors: number;
  readonly editsPerSecond: number;
  readonly editLetters?: number;
  readonly unackedMax?: number;
};
export type PresenceFigures = {
  readonly presence: LatencyPairs;
  readonly edits: LatencyPairs;
  readonly editsSent: number;
  readonly framesEachSecond: number;
  readonly bytesEachSecond: number;
  /** Longest time in which a participant received no presence. */
  readonly longestSilenceMs: number;
  readonly cpuSeconds: number;
};

const ROSTER_MS_MAX = 60_000;
const SETTLED_MS_MAX = 60_000;
/** Up to this size all participants of a room are observers. */
const SMALL_ROOM_MAX = 20;

let rooms: PresenceRoom[] = [];

const functions = {
  /** Returns the time until every participant knows all others. */
  open: async (seats: readonly Seat[]): Promise<{ rosterMs: number }> => {
    const started = performance.now();
    rooms = roomsOf(seats);
    await openAll(allParticipants());
    await until("all participants know each other", () => rooms.every(({ allKnowAll }) => allKnowAll), ROSTER_MS_MAX);
    return { rosterMs: performance.now() - started };
  },
  move: async (motion: PresenceMotion): Promise<PresenceFigures> => {
    const { ms, movers, movesPerSecond, editors, editsPerSecond, editLetters, unackedMax = Number.POSITIVE_INFINITY } = motion;
    const [presence, edits] = [new Latencies(), new Latencies()];
    for (const participant of allParticipants()) participant.forget();
    for (const room of rooms) {
      room.presence = presence;
      room.onReceipt = ({ own, at, sentAt }) => {
        if (!own) edits.record(at - sentAt);
      };
      room.measuring = true;
    }
    let editsSent = 0;
    const edit = (participant: LoadParticipant): void => {
      if (participant.unacked >= unackedMax) return;
      participant.edit(editLetters);
      editsSent += 1;
    };
    const before = process.cpuUsage();
    await Promise.all([
      paced(rooms.length * movers * movesPerSecond, ms, (turn) => inTurn(turn, movers).point()),
      paced(rooms.length * editors * editsPerSecond, ms, (turn) => edit(inTurn(turn, editors))),
    ]);
    const cpu = process.cpuUsage(before);
    if (movers > 0) await until("a cursor arrived", () => presence.total > 0, SETTLED_MS_MAX);
    for (const room of rooms) room.measuring = false;
    const all = allParticipants();
    const silences = movers === 0 ? [0] : all.map((participant) => participant.longestSilence());
    await settled();
    return {
      presence: presence.toPairs(),
      edits: edits.toPairs(),
      editsSent,
      framesEachSecond: sum(all.map(({ frames }) => frames)) / all.length / (ms / 1000),
      bytesEachSecond: sum(all.map(({ bytes }) => bytes)) / all.length / (ms / 1000),
      longestSilenceMs: Math.max(...silences),
      cpuSeconds: (cpu.user + cpu.system) / 1e6,
    };
  },
  close: async (): Promise<void> => {
    for (const participant of allParticipants()) participant.close();
    rooms = [];
  },
};

function roomsOf(seats: readonly Seat[]): PresenceRoom[] {
  const byRoom = new Map<string, Seat[]>();
  for (const seat of seats) byRoom.set(seat.room, [...(byRoom.get(seat.room) ?? []), seat]);
  return [...byRoom.values()].map((ofRoom) => new PresenceRoom(ofRoom, ofRoom.length <= SMALL_ROOM_MAX ? "everybody" : "one in twenty"));
}

function allParticipants(): LoadParticipant[] {
  return rooms.flatMap(({ participants }) => participants);
}

/** The rooms take turns, and so do the active participants of each room. */
function inTurn(turn: number, acting: number): LoadParticipant {
  return rooms[turn % rooms.length]!.participants[Math.floor(turn / rooms.length) % acting]!;
}

/** Waits until all participants have every edit: none may be lost under presence. */
function settled(): Promise<void> {
  return until("every participant has every edit", () => rooms.every(({ isSettled }) => isSettled), SETTLED_MS_MAX);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

setInterval(() => rooms.forEach((room) => room.ping()), PING_MS).unref();
serveCalls(functions);
