/**
 * ARCHITECTURE.md's invariants 1 to 3, held against all that happens: every record as the log stores it, every edit as a
 * tab is given it, every acknowledgement as a tab believes it, that what must be a room's first edit is it or never comes,
 * and that nothing follows a room's deletion. It knows what was typed, and looks at nothing inside the parts. The first broken promise ends the run.
 */

import type { RoomEdit } from "../../client/room/inbox.ts";
import type { StoredRecord } from "../../room-server/ports.ts";
import { epochOf, headOf, serverOf } from "../../shared/bus/record.ts";
import type { ClientId, RoomKey } from "../../shared/ids.ts";
import { keystrokesIn } from "./keystrokes.ts";

export type Failure = { readonly room: RoomKey | undefined; readonly reason: string };

type Ordered = { readonly client: ClientId; readonly counter: number; readonly payload: Uint8Array };

/** What whoever sent an edit that must be the first was told of it. */
export type FirstEdit = "asked" | "committed" | "not-first" | "deleted";

/** A room as the log has it, trimmed or not. */
export class RoomTruth {
  readonly records: StoredRecord[] = [];
  readonly order: Ordered[] = [];
  readonly counters = new Map<ClientId, number>();
  /** How many of each author's keystrokes are in the log: always the first ones. */
  readonly logged = new Map<number, number>();
  /** Who began each epoch. */
  readonly writers = new Map<number, string>();
  readonly firstEdits = new Map<ClientId, FirstEdit>();
  isDeleted = false;

  get head(): number {
    return this.order.length;
  }

  get epoch(): number {
    const last = this.records.at(-1);
    return last === undefined ? 0 : epochOf(last.record);
  }
}

/** A tab, as far as it can be judged from outside. */
export type Judged = { readonly author: number; readonly room: RoomKey; readonly typed: number; readonly unsaved: number; readonly name: string };

export class Judge {
  readonly #rooms = new Map<RoomKey, RoomTruth>();
  #failure: Failure | undefined;

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

  /** One order, without hole or repeat; one writer in each epoch. */
  receiveStored(key: RoomKey, stored: StoredRecord): void {
    const room = this.room(key);
    const { record } = stored;
    const writer = serverOf(record);
    if (room.isDeleted) this.fail(`${writer} writes in the log of a room that is deleted`, key);
    const { epoch } = room;
    room.records.push(stored);
    if (record.kind === "epoch") {
      if (record.epoch !== epoch + 1) this.fail(`epoch ${record.epoch} follows epoch ${epoch}`, key);
      if (record.head !== room.head) this.fail(`epoch ${record.epoch} begins at head ${record.head}, the log is at ${room.head}`, key);
      room.writers.set(record.epoch, writer);
      return;
    }
    if (epochOf(record) !== epoch || room.writers.get(epoch) !== writer) this.fail(`${writer} writes in epoch ${epochOf(record)}, but ${room.writers.get(epoch)} owns epoch ${epoch}`, key);
    if (record.edits.firstSeq !== room.head + 1) this.fail(`seq ${record.edits.firstSeq} follows seq ${room.head}`, key);
    for (const { client, counter, payload } of record.edits.edits) {
      const before = room.counters.get(client) ?? 0;
      if (counter !== before + 1) this.fail(`edit ${counter} of ${client} follows its edit ${before} in the log (head ${headOf(record)})`, key);
      const first = room.firstEdits.get(client);
      if (first !== undefined && (room.head > 0 || first === "not-first")) this.fail(`what ${client} wrote to be the room's first edit, and was told "${first}" of, is seq ${room.head + 1}`, key);
      room.counters.set(client, counter);
      room.order.push({ client, counter, payload });
      this.#receiveKeystrokes(key, room, payload);
    }
  }

  receiveFirstEditAsked(key: RoomKey, client: ClientId): void {
    this.room(key).firstEdits.set(client, "asked");
  }

  /** For good. */
  receiveFirstEditAnswered(key: RoomKey, client: ClientId, answer: FirstEdit): void {
    const { order, firstEdits } = this.room(key);
    firstEdits.set(client, answer);
    const isFirst = order[0]?.client === client;
    if (answer === "committed" && !isFirst) this.fail(`${client} is told that it wrote the room's first edit, which it did not`, key);
    if (answer === "not-first" && isFirst) this.fail(`${client} is told that another wrote the room's first edit, which it did itself`, key);
  }

  get isEveryFirstEditAnswered(): boolean {
    return [...this.#rooms.values()].every(({ firstEdits }) => [...firstEdits.values()].every((answer) => answer !== "asked"));
  }

  receiveDeleted(key: RoomKey): void {
    this.room(key).isDeleted = true;
  }

  /** Nobody is told so of a room that lives. */
  receiveToldDeleted({ name, room }: Judged): void {
    if (!this.room(room).isDeleted) this.fail(`${name} is told that its room is deleted, which it is not`, room);
  }

  #receiveKeystrokes(key: RoomKey, room: RoomTruth, payload: Uint8Array): void {
    for (const { author, index } of keystrokesIn(payload)) {
      const logged = room.logged.get(author) ?? 0;
      if (index !== logged) this.fail(`the log has keystroke ${index} of tab ${author} where ${logged} comes next`, key);
      room.logged.set(author, logged + 1);
    }
  }

  /** Each tab is given the log's own order, without a hole, and only what the log has. */
  receiveDelivered(tab: Judged, after: number, edits: readonly RoomEdit[]): void {
    const { order } = this.room(tab.room);
    edits.forEach(({ seq, client, counter, payload }, index) => {
      const truth = order[seq - 1];
      if (seq !== after + 1 + index) this.fail(`${tab.name} is given seq ${seq} after ${after + index}`, tab.room);
      if (truth === undefined) return this.fail(`${tab.name} is given seq ${seq}, which the log does not have`, tab.room);
      if (truth.client !== client || truth.counter !== counter || !isSame(truth.payload, payload)) this.fail(`${tab.name} is given other bytes under seq ${seq} than the log has`, tab.room);
    });
  }

  receiveSnapshot(tab: Judged, after: number, seq: number): void {
    if (seq <= after) this.fail(`${tab.name} is sent back from seq ${after} to a snapshot at ${seq}`, tab.room);
  }

  /** What a tab shows as saved is in the log. */
  checkSaved({ author, room, typed, unsaved, name }: Judged): void {
    const logged = this.room(room).logged.get(author) ?? 0;
    if (typed - unsaved > logged) this.fail(`${name} takes ${typed - unsaved} of its keystrokes for saved, the log has ${logged}`, room);
  }
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  return a.byteLength === b.byteLength && a.every((byte, index) => byte === b[index]);
}
