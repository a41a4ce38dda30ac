/** The load of the presence scenarios: rooms whose participants move cursors, show states and edit, at given rates. */

import { setTimeout as sleep } from "node:timers/promises";

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
export type ProbeFigures = { readonly pairs: LatencyPairs; readonly missed: number };

const ROSTER_MS_MAX = 60_000;
const SETTLED_MS_MAX = 60_000;
const PROBE_MS_MAX = 15_000;
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
  /**
   * All participants send a large state. Then ticks follow, each with one edit and the presence of all participants.
   * Then edits are sent one by one.
   */
  burst: async ({ ticks, probes }: { ticks: number; probes: number }): Promise<ProbeFigures> => {
    const [room] = rooms as [PresenceRoom];
    for (const participant of room.participants) participant.show(0);
    await sleep(500);
    for (let tick = 1; tick <= ticks; tick++) {
      room.participants[0]!.edit();
      for (const participant of room.participants) participant.show(tick);
      await sleep(20);
    }
    await sleep(1000);
    const probing = new Probing(room);
    for (let probe = 0; probe < probes; probe++) await probing.probeOnce();
    await settled();
    return probing.outcome;
  },
  /** All participants' presence and one edit, every second. */
  steady: async ({ seconds }: { seconds: number }): Promise<ProbeFigures> => {
    const [room] = rooms as [PresenceRoom];
    const probing = new Probing(room);
    const probes: Promise<void>[] = [];
    const { participants } = room;
    await Promise.all([
      paced(participants.length, seconds * 1000, (turn) => participants[turn % participants.length]!.show(turn)),
      paced(1, seconds * 1000, () => void probes.push(probing.probeOnce())),
    ]);
    await Promise.all(probes);
    return probing.outcome;
  },
  close: async (): Promise<void> => {
    for (const participant of allParticipants()) participant.close();
    rooms = [];
  },
};

/** Edits of a room's first participant. Each is followed until all have it or it times out. */
class Probing {
  readonly #room: PresenceRoom;
  readonly #latencies = new Latencies();
  readonly #probes = new Map<number, { left: number; done: () => void }>();
  #missed = 0;

  constructor(room: PresenceRoom) {
    this.#room = room;
    room.onReceipt = ({ counter, sentAt, at }) => {
      const probe = this.#probes.get(counter);
      if (probe === undefined) return;
      this.#latencies.record(at - sentAt);
      probe.left -= 1;
      if (probe.left === 0) probe.done();
    };
  }

  get outcome(): ProbeFigures {
    return { pairs: this.#latencies.toPairs(), missed: this.#missed };
  }

  async probeOnce(): Promise<void> {
    const { participants } = this.#room;
    const counter = participants[0]!.edit();
    await new Promise<void>((done) => {
      this.#probes.set(counter, { left: participants.length, done });
      setTimeout(done, PROBE_MS_MAX).unref();
    });
    this.#missed += this.#probes.get(counter)!.left;
    this.#probes.delete(counter);
  }
}

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
