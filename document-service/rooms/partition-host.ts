/**
 * Reads one partition of the log while it holds the partition's lease: hands each record to its room, and
 * sees to it that rooms are merged, saved, trimmed and forgotten in time. What it holds is bounded: past
 * the limits it stops reading until its rooms are saved, and the log waits.
 */

import type { StoredRecord } from "../../shared/bus/stored-record.ts";
import type { Leases } from "../../shared/lease.ts";
import { LeaseHolder } from "../../shared/lease-holder.ts";
import type { Clock } from "../../shared/clock.ts";
import type { Millis, RoomKey } from "../../shared/ids.ts";
import type { Log } from "../../shared/log.ts";
import { BoardsFloor } from "./boards-floor-host.ts";
import { DueHost, type DueOptions } from "./due-host.ts";
import { LeftoversHost, type LeftoversOptions } from "./leftovers-host.ts";
import type { DocumentServiceMetrics } from "../metrics.ts";
import type { News } from "../ports.ts";
import { pause, unlessMistake } from "../../shared/pause.ts";
import type { PastHost } from "../past/past-host.ts";
import { type RoomDeps, RoomHost, type RoomOptions, type RoomPorts } from "./room-host.ts";
import type { Freshness, Served } from "./serve-host.ts";
import { ReadAheadHost, type ReadAheadOptions } from "./read-ahead-host.ts";
import { TrimsHost, type TrimsOptions } from "./trims-host.ts";

/** `boards`: the leaderboards' leases on the same partitions. */
export type PartitionPorts = RoomPorts & { readonly leases: Leases; readonly boards: Pick<Leases, "read"> };
export type PartitionOptions = RoomOptions &
  LeftoversOptions &
  ReadAheadOptions &
  TrimsOptions &
  DueOptions & {
    /** This run of the service; no other ever has its name. */
    readonly service: string;
    readonly documentsLeaseMs: number;
    readonly documentsDrainMsMax: number;
    readonly documentsBytesMax: number;
    readonly documentsMax: number;
    readonly documentOpeningsMax: number;
  };

export type Deletion =
  /** Another service answers for the room. */
  | { readonly kind: "elsewhere" }
  /** There never was one. */
  | { readonly kind: "no-room" }
  /** `wiped`: resolves once nothing of it is left in the log and the stores. */
  | { readonly kind: "deleted"; readonly wiped: Promise<void> };

const TICK_MS = 100;
const RETRY_MS = 500;

export class PartitionHost {
  readonly #partition: number;
  readonly #ports: PartitionPorts;
  readonly #options: PartitionOptions;
  readonly #deps: { readonly clock: Clock; readonly log: Log; readonly metrics: DocumentServiceMetrics; readonly news: News };
  readonly #stopping = new AbortController();
  readonly #lease: LeaseHolder;
  readonly #boardsFloor: BoardsFloor;
  /** Shared by all rooms of the partition. */
  readonly #roomDeps: RoomDeps;
  readonly #leftovers: LeftoversHost;
  readonly #rooms = new Map<RoomKey, RoomHost>();
  readonly #opening = new Set<RoomHost>();
  /** The last stream sequence handed to a room. */
  #received = 0;
  /** Ends the reading that is under way; the next goes on after `#received`. */
  #again = new AbortController();
  #heldBytes = 0;
  /**
   * How many rooms had, at the last tick, a checkpoint that does not decode. They cannot be forgotten, and take next to
   * no memory; counted against `documentsMax`, many of them would keep all other rooms from being read.
   */
  #undecodable = 0;
  readonly #due: DueHost;
  readonly #trims: TrimsHost;
  #snapshotsNamed = 0;

  constructor(
    partition: number,
    ports: PartitionPorts,
    options: PartitionOptions,
    deps: { clock: Clock; log: Log; metrics: DocumentServiceMetrics; news: News },
  ) {
    const ahead = new ReadAheadHost(partition, ports.log, options, deps);
    this.#partition = partition;
    this.#ports = { ...ports, log: ahead.log };
    this.#options = options;
    this.#deps = deps;
    this.#due = new DueHost(options, deps.clock);
    this.#trims = new TrimsHost(this.#rooms, ahead, options, deps.clock);
    this.#lease = new LeaseHolder(partition, ports.leases, { holder: options.service, leaseMs: options.documentsLeaseMs }, deps);
    this.#boardsFloor = new BoardsFloor(partition, ports.boards, deps);
    this.#roomDeps = {
      ...deps,
      newName: () => `${options.service}-${partition}-${++this.#snapshotsNamed}`,
      boardsFloor: () => this.#boardsFloor.floor,
    };
    this.#leftovers = new LeftoversHost(partition, ports, options, { ...deps, visit: (key, signal) => this.#visit(key, signal) });
  }

  get isHeld(): boolean {
    return this.#lease.isHeld && !this.#stopping.signal.aborted;
  }

  /** Resolves after `stop`, once all is saved and the lease given back. */
  async run(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      const before = await this.#lease.take(this.#stopping.signal);
      if (before !== undefined) await this.#hold(before.floor);
    }
  }

  stop(): void {
    this.#stopping.abort();
  }

  async serve(key: RoomKey, freshness: Freshness, minSeq = 0): Promise<Served> {
    if (!this.isHeld) return { kind: "loading" };
    const served = await this.#room(key).serve(freshness, minSeq);
    if (served.kind !== "no-document") return served;
    const end = await this.#ports.log.end(key);
    if (end.kind === "deleted") return end;
    return end.kind === "at" && end.seq > 0 ? { kind: "loading" } : served; // It has edits that are still to be read.
  }

  async past(key: RoomKey): Promise<PastHost | "deleted" | undefined> {
    if (!this.isHeld) return undefined;
    const room = this.#room(key);
    if (!(await room.opened)) return undefined;
    return room.isDeleted ? "deleted" : room.past;
  }

  /** The record in the log is the deletion, for nothing is ordered after it. What is kept of the room is removed later. */
  async delete(key: RoomKey): Promise<Deletion> {
    if (!this.isHeld) return { kind: "elsewhere" };
    const room = this.#room(key);
    if (!(await room.opened)) return { kind: "elsewhere" };
    const end = await this.#ports.log.end(key);
    if (end.kind === "empty" && !room.isDeleted && !room.isKnown) return { kind: "no-room" };
    let streamSeq = end.kind === "deleted" ? end.streamSeq : undefined;
    if (streamSeq === undefined && !room.isDeleted) {
      streamSeq = await this.#ports.deletions.append(key);
      this.#deps.metrics.deletions.inc();
      this.#deps.log.info({ room: key }, "a room is deleted for good");
    }
    const present = this.isHeld ? this.#room(key) : room; // The other may have been forgotten meanwhile, and would never be wiped.
    if (streamSeq !== undefined) present.receiveDeleted(streamSeq);
    return { kind: "deleted", wiped: present.untilWiped() };
  }

  async #hold(floor: number): Promise<void> {
    this.#deps.log.info({ partition: this.#partition, after: floor }, "reading this part of the log from here on");
    this.#received = floor;
    const reading = new AbortController();
    const working = new AbortController();
    const parts = [
      this.#follow(reading.signal),
      this.#work(working.signal),
      this.#leftovers.run(reading.signal),
      this.#trims.run(reading.signal),
      this.#boardsFloor.follow(reading.signal),
    ];
    await this.#lease.renewUntilLost(() => ({ floor: this.#floor() }), this.#stopping.signal);
    reading.abort();
    if (this.#lease.isHeld) await this.#drain();
    await this.#lease.giveBack({ floor: this.#floor() });
    working.abort();
    this.#due.clear();
    for (const room of this.#rooms.values()) room.close();
    await Promise.all(parts);
    this.#rooms.clear();
    this.#opening.clear();
    this.#heldBytes = 0;
    this.#undecodable = 0;
    this.#observe();
  }

  /** Every record up to it is in a snapshot. */
  #floor(): number {
    let floor = this.#received;
    for (const { uncoveredFrom } of this.#rooms.values()) if (uncoveredFrom !== undefined) floor = Math.min(floor, uncoveredFrom - 1);
    return floor;
  }

  async #follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#again = new AbortController();
      await this.#readOn(AbortSignal.any([signal, this.#again.signal])).catch((cause: unknown) => {
        unlessMistake(cause);
        this.#deps.log.warn({ partition: this.#partition, after: this.#received, cause }, "the log could not be read; trying again");
      });
      await pause(this.#deps.clock, RETRY_MS, signal);
    }
  }

  /** No faster than rooms take what is read. */
  async #readOn(reading: AbortSignal): Promise<void> {
    for await (const stored of this.#ports.log.follow(this.#partition, this.#received, reading)) {
      if (reading.aborted) return;
      this.#receiveRecord(stored);
      while (this.#isFull() && !reading.aborted) await pause(this.#deps.clock, TICK_MS / 4, reading);
    }
  }

  #receiveRecord(stored: StoredRecord): void {
    this.#room(stored.room).receiveRecord(stored);
    this.#received = stored.streamSeq;
    this.#heldBytes += stored.bytes.byteLength;
    this.#deps.metrics.records.inc();
  }

  /** A new RoomHost takes the place of this one. All other rooms know what is read once more, and pass it over. */
  #readAgain(room: RoomHost, from: number): void {
    this.#deps.log.info(
      { partition: this.#partition, room: room.room, from },
      "a room can take again what it let go of: reading this part of the log once more from here on",
    );
    room.close();
    this.#rooms.delete(room.room);
    this.#received = Math.min(this.#received, from - 1);
    this.#again.abort();
  }

  #room(key: RoomKey): RoomHost {
    const known = this.#rooms.get(key);
    if (known !== undefined) return known;
    const room = new RoomHost(key, this.#ports, this.#options, this.#roomDeps);
    this.#rooms.set(key, room);
    this.#opening.add(room);
    void room.lookedUp.then(() => this.#opening.delete(room));
    return room;
  }

  #isFull(): boolean {
    return (
      this.#heldBytes > this.#options.documentsBytesMax ||
      this.#rooms.size - this.#undecodable > this.#options.documentsMax ||
      this.#opening.size > this.#options.documentOpeningsMax
    );
  }

  async #work(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#tick(this.#deps.clock.now());
      await pause(this.#deps.clock, TICK_MS, signal);
    }
  }

  #tick(now: Millis): void {
    const { release, save } = this.#pressure();
    this.#heldBytes = 0;
    this.#undecodable = 0;
    const [unwiped, unsaved]: [RoomHost[], RoomHost[]] = [[], []];
    for (const room of this.#rooms.values()) {
      room.mergeIfDue();
      room.releaseIfIdle(now, { pressed: release });
      this.#heldBytes += room.heldBytes;
      if (room.isUndecodable) this.#undecodable += 1;
      if (room.readAgainFrom !== undefined) this.#readAgain(room, room.readAgainFrom);
      else if (room.isWipeDue(now)) unwiped.push(room);
      else if (room.isSaveDue(now, { pressed: save })) unsaved.push(room);
      else if (room.canRetire(now, { pressed: release })) this.#rooms.delete(room.room);
    }
    this.#due.replace(unsaved, unwiped, { pressed: save });
    this.#observe();
  }

  /**
   * Memory is given back in two steps before it is full: first what a snapshot or the log still has, then what has to be
   * saved before it can be given back.
   */
  #pressure(): { release: boolean; save: boolean } {
    const used = Math.max(
      this.#heldBytes / this.#options.documentsBytesMax,
      (this.#rooms.size - this.#undecodable) / this.#options.documentsMax,
    );
    return { release: used > 0.5, save: used > 0.8 };
  }

  /** Once there is memory for it; undefined: the signal came first. */
  async #visit(key: RoomKey, signal: AbortSignal): Promise<RoomHost | undefined> {
    while (this.#isFull() && !signal.aborted) await pause(this.#deps.clock, TICK_MS, signal);
    return signal.aborted ? undefined : this.#room(key);
  }

  #observe(): void {
    const { metrics } = this.#deps;
    const partition = String(this.#partition);
    metrics.rooms.set({ partition }, this.#rooms.size);
    metrics.heldBytes.set({ partition }, this.#heldBytes);
    metrics.stalledRooms.set({ partition }, [...this.#rooms.values()].filter(({ isStalled }) => isStalled).length);
    metrics.unwipedRooms.set({ partition }, [...this.#rooms.values()].filter(({ isUnwiped }) => isUnwiped).length);
    metrics.isReading.set({ partition }, this.isHeld ? 1 : 0);
    metrics.uncoveredRecords.set({ partition }, this.#received - this.#floor());
    metrics.heldForBoards.set({ partition }, Math.max(0, this.#received - this.#boardsFloor.floor));
  }

  /** Saves what is left to save and can be, so that whoever comes next begins at the end of the log. */
  async #drain(): Promise<void> {
    const { clock } = this.#deps;
    const deadline = clock.now() + this.#options.documentsDrainMsMax;
    const isLeft = (): boolean =>
      [...this.#rooms.values()].some(({ uncoveredFrom, canBeCovered }) => uncoveredFrom !== undefined && canBeCovered);
    while ((isLeft() || this.#due.isBusy) && clock.now() < deadline) {
      this.#due.replace([...this.#rooms.values()], [], { pressed: true });
      await pause(clock, TICK_MS / 4);
    }
  }
}
