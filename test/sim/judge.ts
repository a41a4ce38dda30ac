/**
 * Checks the invariants 1 to 3 of ARCHITECTURE.md against all events of a run: each record as the log stores it, each
 * edit as a tab receives it, and each acknowledgement as a tab understands it. It also checks that an edit which must
 * be a room's first edit is the first or is refused, and that no record follows a room's deletion. The judge knows all
 * keystrokes, and does not read the internal state of the parts. The first failed check ends the run.
 */

import type { DecodedRecord } from "../../room-server/ports.ts";
import { epochOf, headOf, type RecordStamp, serverOf } from "../../shared/bus/record.ts";
import { ONLY_EDIT_COUNTER_MIN } from "../../shared/bus/envelope.ts";
import type { ClientId, RoomKey } from "../../shared/ids.ts";
import { concatenated, hasComplete, isSameBytes, keystrokesIn } from "./keystrokes.ts";
import { beginsWith, LostEnds, type Ordered } from "./lost-ends.ts";
import { isRestorer } from "./restoring-edits.ts";
import type { RoomEdit } from "../../client/room/room-messages.ts";
import type { TentativeEdit } from "../../shared/wire/frames.ts";

export type Failure = { readonly room: RoomKey | undefined; readonly reason: string };

/** The answer to an edit that must be the room's first. */
type FirstEdit = "asked" | "committed" | "not-first" | "deleted";

/** The contents of a room's log, with trimmed records. */
export class RoomTruth {
  readonly records: DecodedRecord[] = [];
  readonly order: Ordered[] = [];
  readonly lost = new LostEnds();
  readonly counters = new Map<ClientId, number>();
  /** By author: the last keystroke in the log, counted from 1. The log has all before it, except after it lost records. */
  readonly logged = new Map<number, number>();
  /** By epoch: the record that began it, which names the owner. Includes records that the log lost. */
  readonly beginnings = new Map<number, RecordStamp>();
  readonly firstEdits = new Map<ClientId, FirstEdit>();
  /** Records that the log lost. The boards may include their points or not. */
  readonly lostRecords: DecodedRecord[] = [];
  isDeleted = false;

  get head(): number {
    return this.order.length;
  }

  get epoch(): number {
    const last = this.records.at(-1);
    return last === undefined ? 0 : epochOf(last.record);
  }

  /** Whether the log had this position: with the epoch of the edit, or with a later epoch that began directly after the edit. */
  wasAt(seq: number, epoch: number): boolean {
    return this.records.some(({ record }) => {
      const isThere = record.kind === "epoch" ? record.head === seq : record.edits.firstSeq <= seq && seq <= headOf(record);
      return isThere && epochOf(record) === epoch;
    });
  }

  /** Count of an author's keystrokes that are in the log or that the log lost. */
  accountedFor(author: number): number {
    return this.lost.typed(author, this.logged.get(author) ?? 0);
  }

  /** Removes the records after `streamSeq`. Returns the count of removed edits. */
  loseBehind(streamSeq: number): number {
    const [before, records] = [this.order.slice(), this.records.filter((stored) => stored.streamSeq <= streamSeq)];
    this.lostRecords.push(...this.records.filter((stored) => stored.streamSeq > streamSeq));
    this.records.splice(0, this.records.length, ...records);
    const last = records.at(-1);
    this.order.length = last === undefined ? 0 : headOf(last.record);
    this.lost.add(before, this.order.length);
    this.#countAgain();
    return before.length - this.order.length;
  }

  /**
   * Restores lost edits that a snapshot contains. Edits that the log has instead are lost. False: the content matches no
   * known order.
   */
  receiveSnapshotContent(content: Uint8Array, seq: number): boolean {
    const order = this.lost.orderOf(content, seq);
    if (order === undefined) return false;
    const different = this.order.findIndex((edit, index) => edit !== order[index]);
    if (different !== -1) this.lost.add(this.order.slice(), different);
    this.order.splice(0, this.order.length, ...order);
    this.#countAgain();
    return true;
  }

  /** Whether the log lost this keystroke and has it now once. A tab that held it as tentative has submitted it again. */
  isRegained(author: number, index: number): boolean {
    const isIt = (other: { author: number; index: number }): boolean => other.author === author && other.index === index;
    const copies = this.order.flatMap(({ payload }) => keystrokesIn(payload).filter(isIt));
    return this.lost.hadKeystroke(author, index) && copies.length === 1;
  }

  #countAgain(): void {
    this.counters.clear();
    this.logged.clear();
    for (const { client, counter, payload } of this.order) {
      this.counters.set(client, counter);
      for (const { author, index } of keystrokesIn(payload)) this.countKeystroke(author, index);
    }
  }

  countKeystroke(author: number, index: number): void {
    this.logged.set(author, Math.max(this.logged.get(author) ?? 0, index + 1));
  }
}

/** The public state of a tab that the judge checks. */
export type CheckedTab = {
  readonly author: number;
  readonly room: RoomKey;
  readonly typed: number;
  readonly unsaved: number;
  readonly name: string;
  /** The payloads of all received edits, concatenated. */ readonly content: Uint8Array;
};

export class Judge {
  readonly #rooms = new Map<RoomKey, RoomTruth>();
  #failure: Failure | undefined;
  /** Ids of clients with empty edits. Only a hostile client sends these; a damaged JOIN gives it another id. */
  readonly #strangers = new Set<ClientId>();
  readonly #typists = new Set<ClientId>();
  /** By author: the user of the tab. */
  readonly #users = new Map<number, string>();
  readonly #pasted: Uint8Array[] = [];
  /** Returns the content of the room's checkpointed snapshot if that snapshot is at this seq, and covers more than `streamSeq`. */
  snapshotContent: (room: RoomKey, seq: number, streamSeq: number) => Uint8Array | undefined = () => undefined;

  get failure(): Failure | undefined {
    return this.#failure;
  }

  get rooms(): ReadonlyMap<RoomKey, RoomTruth> {
    return this.#rooms;
  }

  fail(reason: string, room?: RoomKey): void {
    this.#failure ??= { room, reason };
  }

  room(key: RoomKey): RoomTruth {
    const known = this.#rooms.get(key) ?? new RoomTruth();
    this.#rooms.set(key, known);
    return known;
  }

  receiveTab(author: number, user: string): void {
    this.#users.set(author, user);
  }

  receivePasted(text: Uint8Array): void {
    this.#pasted.push(text);
  }

  /** Checks that the log has one order without gaps and repeats, and one writer in each epoch. */
  receiveStored(key: RoomKey, stored: DecodedRecord): void {
    const room = this.room(key);
    const { record } = stored;
    const writer = serverOf(record);
    if (room.isDeleted) this.fail(`${writer} writes in the log of a room that is deleted`, key);
    const { epoch } = room;
    room.records.push(stored);
    if (record.kind === "epoch") {
      if (record.epoch <= epoch) this.fail(`epoch ${record.epoch} follows epoch ${epoch}`, key);
      if ((room.beginnings.get(record.epoch)?.id ?? record.id) !== record.id) this.fail(`epoch ${record.epoch} begins a second time`, key);
      if (record.head !== room.head && room.lost.hasAny) {
        const last = room.records.at(-2)?.streamSeq ?? 0; // Readers of the snapshot skip it if the snapshot covers more.
        const content = this.snapshotContent(key, record.head, record.head < room.head ? last : 0);
        if (content !== undefined) room.receiveSnapshotContent(content, record.head);
      }
      if (record.head !== room.head) this.fail(`epoch ${record.epoch} begins at head ${record.head}, the log is at ${room.head}`, key);
      room.beginnings.set(record.epoch, record);
      return;
    }
    const beginning = room.beginnings.get(epoch);
    const owner = beginning && serverOf(beginning);
    if (epochOf(record) !== epoch || owner !== writer)
      this.fail(`${writer} writes in epoch ${epochOf(record)}, but ${owner} owns epoch ${epoch}`, key);
    if (record.edits.firstSeq !== room.head + 1) this.fail(`seq ${record.edits.firstSeq} follows seq ${room.head}`, key);
    for (const { client, counter, payload } of record.edits.edits) {
      const before = room.counters.get(client) ?? 0;
      const isStrange = payload.byteLength === 0; // A hostile client may skip counters.
      const isOnly = counter >= ONLY_EDIT_COUNTER_MIN && before === 0; // Over HTTP.
      (isStrange ? this.#strangers : this.#typists).add(client);
      if (this.#strangers.has(client) && this.#typists.has(client))
        this.fail(`the log has edits of a stranger and of a tab under ${client}, up to edit ${counter}`, key);
      if (counter <= before || (!isStrange && !isOnly && counter > room.lost.counted(client, before) + 1))
        this.fail(`edit ${counter} of ${client} follows its edit ${before} in the log (head ${headOf(record)})`, key);
      const first = room.firstEdits.get(client);
      const wasTold = first === "not-first" && !room.lost.hasAny; // After a loss, the answer may have been true.
      if (first !== undefined && (room.head > 0 || wasTold))
        this.fail(`the edit of ${client} that must be the room's first, and was answered with "${first}", has seq ${room.head + 1}`, key);
      room.counters.set(client, counter);
      room.order.push({ client, counter, payload });
      this.#checkUser(key, payload, record.users.get(client));
      this.#receiveKeystrokes(key, room, payload);
      if (!this.#pasted.every((text) => hasComplete(payload, text)))
        this.fail(`a pasted text is incomplete in edit ${counter} of ${client}`, key);
    }
  }

  /** Checks that an edit is stored or shown under the user who typed it. */
  #checkUser(key: RoomKey, payload: Uint8Array, user: string | undefined): void {
    for (const { author, index } of keystrokesIn(payload)) {
      const typist = this.#users.get(author) ?? user;
      if (typist !== user) this.fail(`keystroke ${index} of tab ${author} is an edit of ${user}, but ${typist} typed it`, key);
    }
  }

  receiveFirstEditAsked(key: RoomKey, client: ClientId): void {
    this.room(key).firstEdits.set(client, "asked");
  }

  /** Receives the final answer. */
  receiveFirstEditAnswered(key: RoomKey, client: ClientId, answer: FirstEdit): void {
    const { order, firstEdits, lost } = this.room(key);
    firstEdits.set(client, answer);
    const isFirst = order[0]?.client === client;
    if (answer === "committed" && !isFirst && !lost.began(client))
      this.fail(`${client} received that it wrote the room's first edit, which it did not`, key);
    if (answer === "not-first" && isFirst && !lost.beganWithout(client))
      this.fail(`${client} received that another client wrote the room's first edit, which it wrote itself`, key);
  }

  get isEveryFirstEditAnswered(): boolean {
    return [...this.#rooms.values()].every(({ firstEdits }) => [...firstEdits.values()].every((answer) => answer !== "asked"));
  }

  /** The log lost all records after `streamSeq`, and no other records. Returns the count of lost edits. */
  receiveEndLost(streamSeq: number): number {
    let edits = 0;
    for (const room of this.#rooms.values()) if ((room.records.at(-1)?.streamSeq ?? 0) > streamSeq) edits += room.loseBehind(streamSeq);
    return edits;
  }

  receiveDeleted(key: RoomKey): void {
    this.room(key).isDeleted = true;
  }

  /** Checks that a tab is informed of a deletion only if its room is deleted. */
  receiveToldDeleted({ name, room }: CheckedTab): void {
    if (!this.room(room).isDeleted) this.fail(`${name} received that its room is deleted, which is false`, room);
  }

  #receiveKeystrokes(key: RoomKey, room: RoomTruth, payload: Uint8Array): void {
    for (const { author, index } of keystrokesIn(payload)) {
      const logged = room.logged.get(author) ?? 0;
      const isInOrder = isRestorer(author) || (index >= logged && index <= room.accountedFor(author));
      if (!isInOrder && !room.isRegained(author, index))
        this.fail(`the log has keystroke ${index} of tab ${author} where ${logged} comes next`, key);
      room.countKeystroke(author, index);
    }
  }

  receiveTentative({ room }: CheckedTab, edits: readonly TentativeEdit[]): void {
    for (const { payload, user } of edits) this.#checkUser(room, payload, user);
  }

  /** Whether the log has all keystrokes of an edit, or lost them. */
  isAccountedFor(key: RoomKey, payload: Uint8Array): boolean {
    return keystrokesIn(payload).every(({ author, index }) => index < this.room(key).accountedFor(author));
  }

  /** Checks that each tab receives the log's order without gaps, and only edits of the log. */
  receiveDelivered(tab: CheckedTab, after: number, edits: readonly RoomEdit[]): void {
    const { order, lost } = this.room(tab.room);
    if (lost.hasAny) return this.#receiveDeliveredOfSome(tab, after, edits);
    edits.forEach(({ seq, client, counter, payload }, index) => {
      const truth = order[seq - 1];
      if (seq !== after + 1 + index) this.fail(`${tab.name} is given seq ${seq} after ${after + index}`, tab.room);
      if (truth === undefined) return this.fail(`${tab.name} is given seq ${seq}, which the log does not have`, tab.room);
      if (truth.client !== client || truth.counter !== counter || !isSameBytes(truth.payload, payload))
        this.fail(`${tab.name} is given other bytes under seq ${seq} than the log has`, tab.room);
    });
  }

  /** Edits that are under way when the log loses them still arrive. But no tab may receive parts of two orders. */
  #receiveDeliveredOfSome(tab: CheckedTab, after: number, edits: readonly RoomEdit[]): void {
    edits.forEach(({ seq }, index) => {
      if (seq !== after + 1 + index) this.fail(`${tab.name} is given seq ${seq} after ${after + index}`, tab.room);
    });
    const content = concatenated([tab.content, ...edits.map(({ payload }) => payload)]);
    const { order, lost } = this.room(tab.room);
    if (!beginsWith(order, content) && !lost.had(content))
      this.fail(
        `${tab.name} is given seq ${after + 1} to ${after + edits.length} behind others than the log ever had before them`,
        tab.room,
      );
  }

  /** Checks that a tab is informed of a rollback only after the log lost records. */
  receiveRolledBack({ name, room }: CheckedTab): void {
    if (!this.room(room).lost.hasAny) this.fail(`${name} received that the log was rolled back, which never happened`, room);
  }

  receiveSnapshot(tab: CheckedTab, after: number, seq: number): void {
    if (seq <= after) this.fail(`${tab.name} is sent back from seq ${after} to a snapshot at ${seq}`, tab.room);
  }

  /** Checks that the log has all keystrokes that a tab shows as saved. */
  checkSaved({ author, room, typed, unsaved, name }: CheckedTab): void {
    const accountedFor = this.room(room).accountedFor(author);
    if (typed - unsaved > accountedFor)
      this.fail(
        `${name} takes ${typed - unsaved} of its keystrokes for saved, the log has ${accountedFor}, and has lost none behind them`,
        room,
      );
  }
}
