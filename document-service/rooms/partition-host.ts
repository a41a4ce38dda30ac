/**
 * Connects one partition (partition.ts) to its rooms and to the log, while this service holds the partition's lease.
 * The invariant: the lease is released with the floor that `partition.ts` computes, and no room saves after that.
 */

import { assert, assertNever } from "../../shared/assert.ts";
import { LogEndLost, placeOf, recordIdOf, type RecordPlace, type StoredRecord } from "../../shared/bus/record.ts";
import { type LeaseFacts, LeaseHolder } from "../../shared/cluster/lease-holder.ts";
import type { Leases } from "../../shared/cluster/lease.ts";
import type { RoomKey } from "../../shared/ids.ts";
import { pause, rethrowMistake } from "../../shared/time/pause.ts";
import type { HistoryReadsHost } from "../history/history-reads-host.ts";
import type { EditLog } from "../ports.ts";
import { nextDeletionStep } from "./deletion.ts";
import {
  servedWithoutEdits,
  DocumentPartition,
  type DocumentPartitionEffect,
  type DocumentPartitionInput,
  type DocumentPartitionLimits,
} from "./partition.ts";
import { ReadAheadHost, TrimRoundsHost } from "./trim-rounds-host.ts";
import type { ReadAheadOptions } from "./read-ahead.ts";
import { type DocumentRoomHostDeps, DocumentRoomHost, type DocumentRoomHostOptions, type DocumentRoomPorts } from "./room-host.ts";
import type { Freshness, Served } from "./room-messages.ts";
import { type RoomBytes, type RoomLimitChange, StoredBytes, type StoredBytesOptions } from "../storage/stored-bytes.ts";
import { SweepHost } from "./sweep-host.ts";
import type { SweepOptions } from "./sweep.ts";
import { TrimRounds, type TrimRoundsOptions } from "./trim-rounds.ts";

/** `boards`: the leaderboards' leases for the same partitions. */
export type DocumentPartitionPorts = DocumentRoomPorts & {
  readonly log: EditLog;
  readonly leases: Leases;
  readonly boards: Pick<Leases, "read">;
};
/** `service`: the unique name of this run. */
export type DocumentPartitionOptions = DocumentRoomHostOptions &
  Omit<SweepOptions, "writer"> &
  StoredBytesOptions &
  ReadAheadOptions &
  TrimRoundsOptions &
  DocumentPartitionLimits & { readonly service: string; readonly documentsLeaseMs: number };
type DocumentPartitionDeps = Pick<DocumentRoomHostDeps, "clock" | "log" | "metrics" | "notifications" | "operations" | "leftOut">;

type RoomDeletionResult =
  /** Another service serves the room. */
  | { readonly kind: "elsewhere" }
  /** The room never existed. */
  | { readonly kind: "no-room" }
  /** `wiped`: resolves once the log and the stores contain nothing of the room. */
  | { readonly kind: "deleted"; readonly wiped: Promise<void> };

const TICK_MS = 100;
const OBSERVED_TICKS = 10;
const [FULL_WAIT_MS, FULL_WAITS_MAX] = [25, 200];
const RETRY_MS = 500;
const BOARDS_READ_MS = 2_000;

export class DocumentPartitionHost {
  readonly #partition: number;
  readonly #ports: DocumentPartitionPorts;
  readonly #options: DocumentPartitionOptions;
  readonly #deps: DocumentPartitionDeps;
  readonly #stopping = new AbortController();
  readonly #lease: LeaseHolder;
  /** Shared by all rooms of the partition. */
  readonly #roomDeps: Omit<DocumentRoomHostDeps, "newName" | "readAfter" | "lostSnapshot">;
  readonly #sweep: SweepHost;
  readonly #trims: TrimRoundsHost;
  readonly stored: StoredBytes;
  readonly #limitChanges: RoomLimitChange[] = [];
  readonly #state: DocumentPartition;
  /** The same rooms as in `#state`. */
  readonly #rooms = new Map<RoomKey, DocumentRoomHost>();
  /** Ends the current read of the log. The next one continues after the last record received. */
  #readAgain = new AbortController();
  #namedCount = 0;
  /** How often this run has taken the lease. */
  #leaseCount = 0;

  constructor(partition: number, ports: DocumentPartitionPorts, options: DocumentPartitionOptions, deps: DocumentPartitionDeps) {
    const ahead = new ReadAheadHost(partition, ports.log, options, deps);
    this.#partition = partition;
    this.#ports = { ...ports, log: ahead.log };
    this.#options = options;
    this.#deps = deps;
    this.#state = new DocumentPartition(options);
    this.#trims = new TrimRoundsHost(() => new TrimRounds(this.#state.rooms, options), this.#rooms, ahead, deps.clock);
    this.#lease = new LeaseHolder(partition, ports.leases, { holder: options.service, leaseMs: options.documentsLeaseMs }, deps);
    this.#roomDeps = { ...deps, boardsFloor: () => this.#state.boardsFloor };
    this.stored = new StoredBytes(partition, options);
    this.#sweep = new SweepHost(partition, ports, options, {
      ...deps,
      receiveListed: (kind, sizes) => this.stored.receiveListed(kind, sizes),
      visit: (key, signal) => this.#visit(key, signal),
      visitUntrimmed: (key, signal) => this.#visitUntrimmed(key, signal),
    });
  }

  get isHeld(): boolean {
    return this.#lease.isHeld && !this.#stopping.signal.aborted;
  }

  /** Begins the names of objects that are written under the current lease. A sweep under the next lease removes the unnamed ones. */
  get #writer(): string {
    return `${this.#options.service}-${this.#partition}-${this.#leaseCount}-`;
  }

  takeLimitChanges(): readonly RoomLimitChange[] {
    return this.#limitChanges.splice(0);
  }

  #measureRoom(key: RoomKey): void {
    const storedBytes = this.#rooms.get(key)?.storedBytes;
    const change = storedBytes && this.stored.receiveRoom(key, storedBytes);
    if (change !== undefined) this.#limitChanges.push(change);
  }

  async measure(key: RoomKey): Promise<RoomBytes | undefined> {
    return this.isHeld ? this.#room(key).measure() : undefined;
  }

  /** Resolves after `stop`, once all rooms are saved and the lease is released. */
  async run(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      const before = await this.#lease.take(this.#stopping.signal);
      if (before !== undefined) await this.#hold(before);
    }
  }

  stop(): void {
    this.#stopping.abort();
  }

  async serve(key: RoomKey, freshness: Freshness, minSeq = 0): Promise<Served> {
    if (!this.isHeld) return { kind: "loading" };
    const served = await this.#room(key).serve(freshness, minSeq);
    if (served.kind !== "no-document") return served;
    return servedWithoutEdits(await this.#ports.log.end(key));
  }

  async historyReads(key: RoomKey): Promise<HistoryReadsHost | "deleted" | undefined> {
    if (!this.isHeld) return undefined;
    const room = this.#room(key);
    if (!(await room.opened)) return undefined;
    return room.state.isDeleted ? "deleted" : room.historyReads;
  }

  /** The record in the log is the deletion, because nothing is ordered after it. The room's stores are wiped later. */
  async delete(key: RoomKey): Promise<RoomDeletionResult> {
    if (!this.isHeld) return { kind: "elsewhere" };
    const room = this.#room(key);
    if (!(await room.opened)) return { kind: "elsewhere" };
    const next = nextDeletionStep(room.state, await this.#ports.log.end(key));
    if (next.kind === "no-room") return next;
    await room.measure().catch(rethrowMistake); // A deletion counts by its difference to this; without it, with the next list.
    this.#measureRoom(key);
    let { streamSeq } = next;
    if (next.kind === "append") {
      streamSeq = await this.#ports.deletions.append(key);
      this.#deps.metrics.deletions.inc();
      this.#deps.log.info({ room: key }, "a room is deleted permanently");
    }
    // The first room may have been forgotten in the meantime, and would never be wiped.
    const present = this.isHeld ? this.#room(key) : room;
    if (streamSeq !== undefined) present.receiveDeleted(streamSeq);
    return { kind: "deleted", wiped: present.untilWiped() };
  }

  async #hold(from: LeaseFacts): Promise<void> {
    this.#deps.log.info({ partition: this.#partition, after: from.floor }, "reading this partition of the log from here on");
    this.#leaseCount += 1;
    this.#receive({ kind: "held", from });
    const { metrics } = this.#deps;
    metrics.stalledRooms.countWith(String(this.#partition), () => this.#state.stalledCount);
    metrics.unwipedRooms.countWith(String(this.#partition), () => this.#state.unwipedCount);
    metrics.uncoveredRecords.countWith(String(this.#partition), () => this.#state.uncoveredCount);
    const reading = new AbortController();
    const working = new AbortController();
    const parts = [
      this.#follow(reading.signal),
      this.#work(working.signal),
      this.#sweep.run(this.#writer, reading.signal),
      this.#trims.run(reading.signal),
      this.#followBoardsFloor(reading.signal),
    ];
    await this.#lease.renewUntilLost(() => this.#state.facts, this.#stopping.signal);
    reading.abort();
    this.#receive({ kind: "reading-stopped", isLeaseHeld: this.#lease.isConfirmed }); // While JetStream stores nothing, no room can be saved.
    while (this.#state.isDraining) {
      await pause(this.#deps.clock, TICK_MS / 4);
      this.#receive({ kind: "drain-ticked" });
    }
    await this.#lease.giveBack(this.#state.facts);
    working.abort();
    this.#receive({ kind: "lease-given-back" });
    for (const room of this.#rooms.values()) room.close();
    await Promise.all(parts);
    this.#rooms.clear();
    this.stored.clear();
    this.#receive({ kind: "released" });
    this.#observe();
  }

  async #follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#readAgain = new AbortController();
      await this.#readOn(AbortSignal.any([signal, this.#readAgain.signal])).catch((cause: unknown) => {
        rethrowMistake(cause);
        if (cause instanceof LogEndLost) return this.#startOver(cause);
        this.#deps.log.warn({ partition: this.#partition, after: this.#state.received, cause }, "the log could not be read; trying again");
      });
      await pause(this.#deps.clock, RETRY_MS, signal);
    }
  }

  #startOver(cause: LogEndLost): void {
    const { log } = this.#deps;
    log[cause.isCertain ? "error" : "info"]({ partition: this.#partition, cause }, "the last record is gone: rooms are read again");
    for (const [key, room] of this.#rooms) {
      room.close();
      this.stored.forgetRoom(key);
    }
    this.#rooms.clear(); // The rooms may have edits that the log has lost.
    this.#receive({ kind: "log-end-lost" });
  }

  /** Ends if memory stays full. The next read begins with a check: a room cannot be saved once the log has lost its last record. */
  async #readOn(reading: AbortSignal): Promise<void> {
    for await (const stored of this.#ports.log.follow(this.#partition, this.#state.position, reading)) {
      for (let waits = 0; this.#state.isFull && waits < FULL_WAITS_MAX; waits++) await pause(this.#deps.clock, FULL_WAIT_MS, reading);
      if (this.#state.isFull || reading.aborted) return;
      this.#receiveRecord(stored);
    }
  }

  #receiveRecord(stored: StoredRecord): void {
    this.#room(stored.room).receiveRecord(stored);
    this.#receive({ kind: "record-read", room: stored.room, place: placeOf(stored), bytes: stored.bytes.byteLength });
    this.#deps.metrics.records.inc();
  }

  /** Undefined: an earlier build wrote the lease, and its floor counts. */
  async #hasRecord(last: RecordPlace | undefined): Promise<boolean> {
    if (last === undefined) return true;
    const { streamSeq, id } = last;
    for await (const { bytes } of this.#ports.log.readAll(this.#partition, streamSeq - 1, streamSeq)) return recordIdOf(bytes) === id;
    return false;
  }

  /**
   * The boards' floor only rises, so an old one keeps more records, never fewer. After the log lost its end, a floor counts
   * only if the log still has the last record that the boards had read.
   */
  async #followBoardsFloor(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        const { lease } = await this.#ports.boards.read(this.#partition);
        const isCurrent = lease !== undefined && (await this.#hasRecord(lease.last));
        this.#receive({ kind: "boards-lease-read", floor: lease === undefined || isCurrent ? lease?.floor : 0 });
      } catch (cause) {
        rethrowMistake(cause);
        this.#deps.log.debug({ partition: this.#partition, cause }, "the boards' progress could not be read: nothing more is trimmed");
      }
      await pause(this.#deps.clock, BOARDS_READ_MS, signal);
    }
  }

  #room(key: RoomKey): DocumentRoomHost {
    const known = this.#rooms.get(key);
    if (known !== undefined) return known;
    const writer = this.#writer; // Also of a save that ends under the next lease, whose sweep may remove its object.
    const newName = (): string => `${writer}${++this.#namedCount}`;
    const room = new DocumentRoomHost(key, this.#ports, this.#options, { ...this.#roomDeps, newName, ...this.#state.reading(key) });
    this.#rooms.set(key, room);
    this.#receive({ kind: "room-created", room: room.state });
    void room.lookedUp.then(() => this.#receive({ kind: "room-looked-up", room: room.state }));
    void room.opened.then(() => this.#rooms.get(key) === room && this.#measureRoom(key)); // Before it changes.
    return room;
  }

  /** Resolves with the room once there is memory for it; undefined: the signal came first. */
  async #visit(key: RoomKey, signal: AbortSignal): Promise<DocumentRoomHost | undefined> {
    while (this.#state.isFull && !signal.aborted) await pause(this.#deps.clock, TICK_MS, signal);
    return signal.aborted ? undefined : this.#room(key);
  }

  async #visitUntrimmed(key: RoomKey, signal: AbortSignal): Promise<void> {
    const room = await this.#visit(key, signal);
    await room?.takeMissing(this.#state.position, (last) => this.#hasRecord(last));
  }

  async #work(signal: AbortSignal): Promise<void> {
    for (let ticks = 0; !signal.aborted; ticks++) {
      this.#receive({ kind: "tick" });
      if (ticks % OBSERVED_TICKS === 0) this.#observe();
      await pause(this.#deps.clock, TICK_MS, signal);
    }
  }

  #receive(input: DocumentPartitionInput): void {
    for (const effect of this.#state.receive(input, this.#deps.clock.now())) this.#carryOut(effect);
  }

  #carryOut(effect: DocumentPartitionEffect): void {
    switch (effect.kind) {
      case "tick-rooms":
        for (const { key } of effect.rooms) this.#rooms.get(key)?.tick(effect.isPressed);
        return this.#receive({ kind: "rooms-ticked", rooms: effect.rooms });
      case "measure-rooms":
        return effect.rooms.forEach(({ key }) => this.#measureRoom(key));
      case "start-job":
        return void this.#runJob(effect.room, effect.job);
      case "read-again":
        this.#deps.log.info({ partition: this.#partition, room: effect.room, from: effect.from }, "reading the log again for a room");
        this.#rooms.get(effect.room)?.close();
        this.#rooms.delete(effect.room);
        this.stored.forgetRoom(effect.room);
        return this.#readAgain.abort();
      case "forget-room":
        this.#measureRoom(effect.room); // A deleted room may leave memory before its next turn.
        this.stored.forgetRoom(effect.room);
        return void this.#rooms.delete(effect.room);
      default:
        return assertNever(effect);
    }
  }

  async #runJob(key: RoomKey, kind: "save" | "wipe"): Promise<void> {
    const room = this.#rooms.get(key);
    assert(room !== undefined, "a job starts in a room of the partition");
    await room.runJob({ kind });
    if (room.state.state === "deleted") this.#sweep.receiveWiped(key);
    this.#receive({ kind: "job-ended", room: key });
  }

  #observe(): void {
    const { metrics } = this.#deps;
    const { rooms, heldBytes, heldForBoardsCount } = this.#state;
    const partition = String(this.#partition);
    metrics.rooms.set({ partition }, rooms.size);
    metrics.heldBytes.set({ partition }, heldBytes);
    metrics.isReading.set({ partition }, this.isHeld ? 1 : 0);
    metrics.heldForBoards.set({ partition }, heldForBoardsCount);
  }
}
