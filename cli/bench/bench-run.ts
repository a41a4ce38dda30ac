/** One run of `coroom bench`: everybody joins, then edits and moves on a schedule that no answer delays (open loop). */

import { setTimeout as sleep } from "node:timers/promises";

import { reconnectAfterClose } from "../../shared/wire/close-codes.ts";
import type { ClientId } from "../../client/index.ts";
import type { BenchAccess } from "./access.ts";
import { BenchPerson } from "./bench-person.ts";
import { type BenchFigures, isGeneratorLimit, type MissingReport, reasonOf, reasonOfClose, Reasons, summaryOf } from "./figures.ts";
import { Latencies } from "./latencies.ts";
import { paced } from "./paced.ts";
import { type BenchPlan, type BenchSeat, rampUpSecondsOf } from "./plan.ts";
import { RoomEdits } from "./room-edits.ts";

/** Maximum wait after the ramp-up until everybody has joined. The run continues with the others. */
const JOINED_MS_MAX = 20_000;
/** Maximum wait after the load until everybody has every edit. */
const SETTLED_MS_MAX = 30_000;
/** Nothing shows when the last cursor move has arrived, because later moves replace earlier ones. */
const LAST_MOVE_MS = 500;
const LOOK_EVERY_MS = 20;
const MICROS = 1_000;

type BenchRoom = {
  readonly name: string;
  readonly edits: RoomEdits;
  readonly people: BenchPerson[];
  readonly personOf: Map<ClientId, BenchPerson>;
};

export class BenchRun {
  readonly #plan: BenchPlan;
  readonly #access: BenchAccess;
  readonly #signal: AbortSignal;
  readonly #times = { acked: new Latencies(), received: new Latencies() };
  readonly #joined = new Latencies();
  readonly #away = new Latencies();
  readonly #seen = new Latencies();
  readonly #late = new Latencies();
  readonly #refusals = new Reasons();
  readonly #disconnects = new Reasons();
  readonly #rooms: readonly BenchRoom[];
  readonly #people: { readonly person: BenchPerson; readonly room: BenchRoom }[] = [];
  #loadMs = 0;
  #cpuMs = 0;

  constructor(plan: BenchPlan, access: BenchAccess, signal: AbortSignal) {
    this.#plan = plan;
    this.#access = access;
    this.#signal = signal;
    this.#rooms = plan.rooms.map((name) => ({
      name,
      edits: new RoomEdits(plan.load.people, this.#times),
      people: [],
      personOf: new Map(),
    }));
  }

  get opened(): number {
    return this.#joined.total;
  }

  /** Rooms that somebody tried to join, so that they may be stored. */
  get enteredRooms(): readonly string[] {
    return this.#rooms.filter(({ people }) => people.length > 0).map(({ name }) => name);
  }

  /** Returns when everybody joined, when it takes too long, or when the run is stopped. Everybody else leaves. */
  async join(): Promise<void> {
    const { seats, load } = this.#plan;
    const rampUpMs = rampUpSecondsOf(load) * 1_000;
    await paced((seats.length * 1_000) / rampUpMs, rampUpMs, (turn) => this.#enter(seats[turn]!, turn), this.#isStopped);
    await this.#wait(() => this.#people.every(({ person }) => person.isHere), JOINED_MS_MAX);
    for (const { person } of this.#people.filter(({ person }) => !person.hasJoined)) person.leave();
    for (const room of this.#rooms)
      for (const person of room.people) if (person.client !== undefined && person.hasJoined) room.personOf.set(person.client, person);
  }

  /** The turns of people who have not joined pass, so that the others do not get their load. */
  async runLoad(): Promise<void> {
    const { editRate, cursorRate, seconds } = this.#plan.load;
    const people = this.#people;
    const started = performance.now();
    const cpuBefore = process.cpuUsage();
    await Promise.all([
      paced(
        editRate,
        seconds * 1_000,
        (turn, lateMs) => {
          const { person, room } = people[turn % people.length]!;
          if (!person.hasJoined) return;
          this.#late.record(lateMs);
          person.type(room.edits.write(person.place, performance.now()));
        },
        this.#isStopped,
      ),
      paced(
        cursorRate,
        seconds * 1_000,
        (turn, lateMs) => {
          const { person } = people[turn % people.length]!;
          if (!person.hasJoined) return;
          this.#late.record(lateMs);
          person.move();
        },
        this.#isStopped,
      ),
    ]);
    const { user, system } = process.cpuUsage(cpuBefore);
    this.#cpuMs = (user + system) / MICROS;
    this.#loadMs = performance.now() - started;
  }

  /** Returns when everybody has every edit, or when it takes too long. */
  async settle(): Promise<void> {
    if (this.#people.some(({ person }) => person.moves.count > 0)) await sleep(LAST_MOVE_MS);
    const deadline = performance.now() + SETTLED_MS_MAX;
    while (performance.now() < deadline && !this.#rooms.every(({ edits }) => edits.isComplete)) await sleep(LOOK_EVERY_MS);
  }

  leave(): void {
    for (const { person } of this.#people) person.leave();
  }

  /** Call it before `leave`, because it shows who is connected. */
  figures(): Omit<BenchFigures, "rooms"> {
    const total = (count: (edits: RoomEdits) => number): number => this.#rooms.reduce((sum, { edits }) => sum + count(edits), 0);
    const cpuCores = this.#loadMs === 0 ? 0 : this.#cpuMs / this.#loadMs;
    const lateMs = summaryOf(this.#late);
    return {
      isStopped: this.#signal.aborted,
      url: this.#access.url,
      tenant: this.#access.tenant,
      load: this.#plan.load,
      loadSeconds: Math.round(this.#loadMs / 100) / 10,
      connections: { wanted: this.#plan.seats.length, opened: this.opened, joinMs: summaryOf(this.#joined) },
      edits: {
        sent: total(({ written }) => written),
        acknowledged: total(({ acknowledged }) => acknowledged),
        received: total(({ received }) => received),
        expected: total(({ expected }) => expected),
        repeated: total(({ repeated }) => repeated),
        acknowledgedMs: summaryOf(this.#times.acked),
        receivedMs: summaryOf(this.#times.received),
        missing: this.#rooms.flatMap(missingIn),
      },
      cursors: {
        sent: this.#people.reduce((sum, { person }) => sum + person.moves.count, 0),
        seen: this.#seen.total,
        seenMs: summaryOf(this.#seen),
      },
      refusals: this.#refusals.all,
      disconnects: this.#disconnects.all,
      reconnects: { count: this.#away.total, awayMs: summaryOf(this.#away) },
      generator: { cpuCores: Math.round(cpuCores * 100) / 100, lateMs, isLimit: isGeneratorLimit(cpuCores, lateMs) },
    };
  }

  readonly #isStopped = (): boolean => this.#signal.aborted;

  async #wait(isDone: () => boolean, msMax: number): Promise<void> {
    const deadline = performance.now() + msMax;
    while (!isDone() && !this.#signal.aborted && performance.now() < deadline) await sleep(LOOK_EVERY_MS);
  }

  #enter({ room: index, place }: BenchSeat, number: number): void {
    const room = this.#rooms[index]!;
    const { edits } = room;
    /** The last move that this person saw, by person. */
    const lastSeen = new Map<BenchPerson, number>();
    const person = new BenchPerson(
      { url: this.#access.url, room: room.name, token: this.#access.tokenOf(number), place },
      {
        here: (ms, isFirst) => {
          edits.addPerson(place);
          (isFirst ? this.#joined : this.#away).record(ms);
        },
        edits: (received) => {
          const now = performance.now();
          for (const each of received) edits.receive(place, each, now);
        },
        snapshot: (counts) => edits.receiveSnapshot(place, counts),
        rolledBack: () => edits.receiveRolledBack(place),
        pointed: (by, to) => {
          const other = room.personOf.get(by);
          const moved = other?.moves.moveTo(to);
          if (other === undefined || moved === undefined || moved.move <= (lastSeen.get(other) ?? 0)) return;
          lastSeen.set(other, moved.move);
          this.#seen.record(performance.now() - moved.at);
        },
        refused: (refused) => this.#refusals.add(reasonOf(refused)),
        closed: (close) => {
          if (person.hasJoined) this.#disconnects.add(reasonOfClose(close));
          else if (reconnectAfterClose(close.code) !== "never") this.#refusals.add(reasonOfClose(close)); // A final one is in `refused`.
        },
      },
    );
    room.people[place] = person;
    this.#people.push({ person, room });
  }
}

function missingIn({ name, edits, people }: BenchRoom): MissingReport[] {
  return edits.missing().map(({ person, author, first, last }) => ({
    room: name,
    person: `person ${person + 1}`,
    author: `person ${author + 1}`,
    edits: first === last ? String(first) : `${first} to ${last}`,
    count: last - first + 1,
    isConnected: people[person]?.isHere === true,
  }));
}
