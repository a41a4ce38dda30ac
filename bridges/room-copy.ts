/**
 * The bridge's copy of a room's content, shared by all its clients: a snapshot and the edits after it, as bytes. The
 * copy follows the room, so it has only committed content. No edit is integrated into a document on this thread, so no
 * edit can block the bridge. After [1,2,3] from one client's connection, 2 and 3 from another client's connection have no
 * effect. Rules YRC1 to YRC15.
 */

import * as Y from "yjs";

import type { Millis, Position, RoomKey, Seq } from "../shared/ids.ts";
import { type Rate, TokenBucket } from "../shared/limits/token-bucket.ts";
import type { YClocks } from "../shared/yjs/update-needs.ts";
import type { KnownEdit, RoomEdit } from "../client/room/room-messages.ts";
import type { EditName } from "../client/persistence/edit-store.ts";
import { JobQueue } from "./job-queue.ts";
import type { YjsWork } from "./ports.ts";
import { type AcceptableUpdate, ContentRuns } from "./update-facts.ts";
import { encodeUpdate } from "./y-websocket-protocol.ts";
import type { MergeAnswer, OpenedContent } from "./yjs-work.ts";

type RoomSnapshot = { readonly position: Position; readonly last?: EditName | undefined; readonly payload: Uint8Array };

/** A client that follows the copy. */
export interface CopyReader {
  /** Committed content that was not announced before, as a message of the y-websocket protocol. */
  receiveUpdate(message: Uint8Array): void;
  /** An application's text from another client. */
  receiveRelayed(message: Uint8Array): void;
  /** The copy cannot continue. The client must be closed; it starts again with a new copy. */
  receiveLost(why: string): void;
}

type RoomCopyOptions = { readonly yRoomBytesMax: number };
type RoomCopyDeps = { readonly work: YjsWork; readonly reportLeftOut: (why: string) => void };

const NO_CONTENT = Uint8Array.of(0, 0);
/** Number of edits after the snapshot at which they are condensed: typed letters become words, and deleted content disappears. */
const CONDENSE_EDITS = 1_000;
/** Number of edits after the snapshot that are condensed without a request. Each takes about 400 bytes, however short it is. */
const TAIL_EDITS_MAX = 10_000;
const NOTHING_KNOWN = Uint8Array.of(0);
/** Bytes of texts that one room relays, to all its clients together. Each client's copy takes about 10 µs. */
const RELAYS: Rate = { burst: 8 * 1024 ** 2, perSecond: 2 * 1024 ** 2 };
/** Cost of a relayed text for each client in addition to its bytes. */
const RELAY_BYTES = 1_024;

export class RoomCopy {
  readonly #bytesMax: number;
  readonly #deps: RoomCopyDeps;
  readonly #readers = new Set<CopyReader>();
  readonly #jobs = new JobQueue();
  /** Seq of the last received content, and the edit at it. Jobs may still wait. */
  #seq = 0 as Seq;
  #since: KnownEdit | undefined;
  #base: Uint8Array = NO_CONTENT;
  #tail: Uint8Array[] = [];
  /** Bytes of content, and of content that waits for a job. */
  #bytes = 0;
  #content = new ContentRuns();
  #deletes = Y.createDeleteSet();
  /** Deletions of the newest edits, merged when they are needed. */
  #newDeletes: Y.Snapshot["ds"][] = [];
  /** Undefined: the room relayed nothing yet. */
  #relays: TokenBucket | undefined;
  #isCondensing = false;
  #isLost = false;

  constructor({ yRoomBytesMax }: RoomCopyOptions, deps: RoomCopyDeps) {
    this.#bytesMax = yRoomBytesMax;
    this.#deps = deps;
  }

  /** The newest edit of the copy, from which another connection to the room can continue. */
  get since(): KnownEdit | undefined {
    return this.#since;
  }

  get isLost(): boolean {
    return this.#isLost;
  }

  /** Bytes of the content. Each request reads all of it. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Number of ranges of deleted content. `contains` reads all of them. */
  get deletedRanges(): number {
    let ranges = 0;
    for (const deletes of this.#deletes.clients.values()) ranges += deletes.length;
    return ranges;
  }

  /** Exclusive end of the content of this Yjs client. */
  clockOf(client: number): number {
    return this.#content.clocks.get(client) ?? 0;
  }

  get clocks(): YClocks {
    return this.#content.clocks;
  }

  enter(reader: CopyReader): void {
    this.#readers.add(reader);
  }

  leave(reader: CopyReader): void {
    this.#readers.delete(reader);
  }

  /** Sends an application's text to all other clients of this bridge. False: the room is above its rate, and none gets it. */
  relay(message: Uint8Array, from: CopyReader, now: Millis): boolean {
    this.#relays ??= new TokenBucket(RELAYS, now);
    if (!this.#relays.take(now, (this.#readers.size - 1) * (RELAY_BYTES + message.byteLength))) return false;
    for (const reader of this.#readers) if (reader !== from) reader.receiveRelayed(message);
    return true;
  }

  receiveSnapshot({ position, last, payload }: RoomSnapshot): void {
    if (position.seq <= this.#seq || !this.#accept(payload.byteLength)) return;
    const before = this.#seq;
    this.#seq = position.seq;
    this.#since = last && { position, last };
    this.#jobs.add((done) =>
      this.#deps.work.open(payload, (opened) => {
        if (opened === undefined) this.lose("the room's snapshot cannot be read: connect again later");
        else this.#replace(payload, opened, before > 0);
        done();
      }),
    );
  }

  /** `position`: of the last edit. */
  receiveEdits(edits: readonly RoomEdit[], position: Position): void {
    for (const edit of edits) {
      if (edit.seq <= this.#seq || !this.#accept(edit.payload.byteLength)) continue;
      this.#seq = edit.seq;
      const { client, counter } = edit;
      this.#since = edit.seq === position.seq ? { position, last: { client, counter } } : undefined;
      this.#jobs.add((done) => this.#takeEdit(edit.payload, done));
    }
  }

  /** Calls `run` once everything received so far is in the copy. */
  settled(run: () => void): void {
    this.#jobs.add((done) => {
      run();
      done();
    });
  }

  /** Calls `receive` with the content beyond the state vector. Undefined: the content cannot be read. */
  answer(stateVector: Uint8Array, receive: (merged: MergeAnswer | undefined) => void): void {
    this.#jobs.add((done) => {
      if (this.#isLost) return done();
      const edits = this.#tail.length;
      const parts = [this.#base, ...this.#tail];
      this.#deps.work.merge({ parts, stateVector, condense: edits > CONDENSE_EDITS }, (merged) => {
        if (merged !== undefined) this.#rebase(merged.content);
        receive(merged);
        done();
      });
    });
  }

  /** Whether an update has nothing that the copy lacks. Linear in the deletions of both. */
  contains({ runs, deletes }: AcceptableUpdate): boolean {
    this.#mergeDeletes();
    if (!runs.every((run) => this.#content.has(run))) return false;
    return Y.equalDeleteSets(this.#deletes, Y.mergeDeleteSets([this.#deletes, deletes]));
  }

  /** The copy and the room have different content, or the copy cannot be kept. */
  lose(why: string): void {
    if (this.#isLost) return;
    this.#isLost = true;
    this.#jobs.clear();
    for (const reader of this.#readers) reader.receiveLost(why);
  }

  #accept(bytes: number): boolean {
    if (this.#isLost) return false;
    this.#bytes += bytes;
    if (this.#bytes <= this.#bytesMax) return true;
    this.lose("the room is larger than this server holds: connect again later");
    return false;
  }

  #replace(payload: Uint8Array, { snapshot, pending }: OpenedContent, isNews: boolean): void {
    const { sv, ds } = Y.decodeSnapshot(snapshot);
    this.#rebase(payload);
    this.#bytes -= payload.byteLength; // Counted since it was received.
    this.#content = new ContentRuns(sv);
    for (const run of pending) this.#content.add(run);
    this.#deletes = ds;
    this.#newDeletes = [];
    if (isNews) this.#announce(payload);
  }

  #takeEdit(update: Uint8Array, done: () => void): void {
    this.#deps.work.check(update, (facts) => {
      if (facts === undefined) this.lose("an edit of the room could not be checked: connect again later");
      else if (facts.kind === "unfit") {
        this.#bytes -= update.byteLength;
        this.#deps.reportLeftOut(facts.why); // No document of the room has it.
      } else {
        this.#tail.push(update);
        for (const run of facts.runs) this.#content.add(run);
        if (facts.deletes.clients.size > 0) this.#newDeletes.push(facts.deletes);
        this.#announce(update);
        if (this.#tail.length % TAIL_EDITS_MAX === 0) this.#condense(this.#base, [...this.#tail]);
      }
      done();
    });
  }

  /** Edits are announced meanwhile, and stay behind the condensed ones. If it fails, the next edits are condensed with these. */
  #condense(base: Uint8Array, edits: readonly Uint8Array[]): void {
    this.#mergeDeletes();
    if (this.#isCondensing) return;
    this.#isCondensing = true;
    this.#deps.work.merge({ parts: [base, ...edits], stateVector: NOTHING_KNOWN, condense: true }, (merged) => {
      this.#isCondensing = false;
      // An answer or a snapshot may have replaced these edits meanwhile.
      if (merged !== undefined && this.#base === base) this.#rebase(merged.content, edits.length);
    });
  }

  /** Linear: given all sets at once, Yjs looks up each client of a set in all later ones. */
  #mergeDeletes(): void {
    const all = Y.createDeleteSet();
    for (const { clients } of [this.#deletes, ...this.#newDeletes]) {
      for (const [client, ranges] of clients) {
        const known = all.clients.get(client) ?? [];
        for (const range of ranges) known.push(range);
        all.clients.set(client, known);
      }
    }
    this.#deletes = Y.mergeDeleteSets([all]);
    this.#newDeletes = [];
  }

  /** `edits`: number of edits after the snapshot that the content includes. */
  #rebase(content: Uint8Array, edits = this.#tail.length): void {
    const included = this.#tail.splice(0, edits);
    this.#bytes += content.byteLength - this.#base.byteLength - included.reduce((sum, { byteLength }) => sum + byteLength, 0);
    this.#base = content;
  }

  #announce(update: Uint8Array): void {
    const message = encodeUpdate(update); // Encoded once for all clients.
    for (const reader of this.#readers) reader.receiveUpdate(message);
  }
}

type SharedRoomsDeps = Pick<RoomCopyDeps, "reportLeftOut"> & {
  readonly workOf: (room: RoomKey) => YjsWork;
  readonly reportRooms: (count: number) => void;
};

/** The copies of rooms that clients use now. Clients of different tenants never share one. Rule YRC9. */
export class SharedRooms {
  readonly #options: RoomCopyOptions;
  readonly #deps: SharedRoomsDeps;
  readonly #rooms = new Map<RoomKey, { readonly copy: RoomCopy; users: number }>();

  constructor(options: RoomCopyOptions, deps: SharedRoomsDeps) {
    this.#options = options;
    this.#deps = deps;
  }

  /** The copy is kept until every user has released it. A copy that was lost is replaced. */
  take(room: RoomKey): { readonly copy: RoomCopy; readonly release: () => void } {
    const known = this.#rooms.get(room);
    const entry = known !== undefined && !known.copy.isLost ? known : { copy: this.#newCopy(room), users: 0 };
    this.#rooms.set(room, entry);
    entry.users += 1;
    this.#deps.reportRooms(this.#rooms.size);
    const release = (): void => {
      entry.users -= 1;
      if (entry.users === 0 && this.#rooms.get(room) === entry) this.#rooms.delete(room);
      this.#deps.reportRooms(this.#rooms.size);
    };
    return { copy: entry.copy, release };
  }

  #newCopy(room: RoomKey): RoomCopy {
    const { workOf, reportLeftOut } = this.#deps;
    return new RoomCopy(this.#options, { work: workOf(room), reportLeftOut });
  }
}
