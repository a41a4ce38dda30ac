/**
 * Decides which document events webhooks announce, and when: a change once its room is quiet, and at the latest after a
 * maximum time; a snapshot once it is saved; a deletion. Rules CHN1 to CHN3.
 *
 * The invariant: a change is in the queue before a checkpoint covers its edits. Until then a restarted service reads
 * them again. So no change is lost, and a change may be announced twice.
 */

import { assertNever } from "../../shared/assert.ts";
import type { WebhookEvent } from "../../shared/bus/webhook-events.ts";
import { type Millis, type Position, type RoomKey, roomOf, tenantOf, type UnixMillis } from "../../shared/ids.ts";
import { wantsEventsOf, type WebhookEndpoint } from "../../shared/settings/webhook-endpoints.ts";

export type ChangeQueueOptions = PendingChangeOptions & { readonly webhookUrls: readonly WebhookEndpoint[] };

/** `call`: identifies the caller. Exactly one `settled` or `rejected` effect answers it. */
export type ChangeQueueInput =
  | { readonly kind: "edits"; readonly room: RoomKey; readonly position: Position; readonly edits: number }
  /** A checkpoint is about to cover the room's edits. */
  | { readonly kind: "queue-pending"; readonly room: RoomKey; readonly call: number }
  | { readonly kind: "snapshot"; readonly room: RoomKey; readonly position: Position; readonly bytes: number; readonly call: number }
  | { readonly kind: "deleted"; readonly room: RoomKey; readonly call: number }
  | { readonly kind: "tick" }
  | { readonly kind: "added"; readonly add: number }
  | { readonly kind: "add-failed"; readonly add: number; readonly cause: unknown };

export type ChangeQueueEffect =
  /** Adds the event to the queue; the outcome comes back as `added` or `add-failed`. */
  | { readonly kind: "add"; readonly add: number; readonly id: string; readonly event: WebhookEvent }
  | { readonly kind: "settled"; readonly call: number }
  | { readonly kind: "rejected"; readonly call: number; readonly cause: unknown }
  | { readonly kind: "warn"; readonly of: "change" | "snapshot"; readonly room: RoomKey; readonly cause: unknown };

/** The caller that queues the pending change: a call, or the queue itself because the change was due. */
type Caller = number | "due";
/** `adding`: the caller of the change on its way into the queue. */
type RoomChanges = { readonly room: RoomKey; readonly pending: PendingChange; adding: Caller | undefined; readonly callers: Caller[] };
type Adding =
  | { readonly kind: "change"; readonly changes: RoomChanges; readonly change: AnnouncedChange; readonly caller: Caller }
  | { readonly kind: "snapshot"; readonly room: RoomKey; readonly call: number }
  | { readonly kind: "deleted"; readonly call: number };
type Clocks = { readonly now: Millis; readonly date: UnixMillis };

export class ChangeQueue {
  readonly #options: ChangeQueueOptions;
  /** Rooms with a change that is pending, or on its way into the queue. */
  readonly #rooms = new Map<RoomKey, RoomChanges>();
  readonly #adding = new Map<number, Adding>();
  #adds = 0;

  constructor(options: ChangeQueueOptions) {
    this.#options = options;
  }

  receive(input: ChangeQueueInput, clocks: Clocks): ChangeQueueEffect[] {
    switch (input.kind) {
      case "edits":
        if (input.edits > 0 && this.#isWanted(input.room)) {
          this.#changesOf(input.room).pending.receiveEdits(input.position, input.edits, clocks.now);
        }
        return [];
      case "queue-pending":
        return this.#queuePending(this.#rooms.get(input.room), input.call, clocks);
      case "snapshot":
        return this.#receiveSnapshot(input, clocks.date);
      case "deleted":
        return this.#receiveDeleted(input, clocks.date);
      case "tick":
        return this.#queueDue(clocks);
      case "added":
        return this.#receiveAdded(input.add, clocks);
      case "add-failed":
        return this.#receiveFailure(input, clocks);
      default:
        return assertNever(input);
    }
  }

  #isWanted(room: RoomKey): boolean {
    return wantsEventsOf(tenantOf(room), this.#options.webhookUrls);
  }

  #changesOf(room: RoomKey): RoomChanges {
    const known = this.#rooms.get(room);
    if (known !== undefined) return known;
    const changes: RoomChanges = { room, pending: new PendingChange(this.#options), adding: undefined, callers: [] };
    this.#rooms.set(room, changes);
    return changes;
  }

  #queuePending(changes: RoomChanges | undefined, call: number, clocks: Clocks): ChangeQueueEffect[] {
    if (changes === undefined) return [{ kind: "settled", call }];
    changes.callers.push(call);
    return this.#addNext(changes, clocks);
  }

  /** Skips a room whose due change is already on its way or waits for its turn. */
  #queueDue(clocks: Clocks): ChangeQueueEffect[] {
    const effects: ChangeQueueEffect[] = [];
    for (const changes of this.#rooms.values()) {
      if (!changes.pending.isDue(clocks.now) || changes.adding === "due" || changes.callers.includes("due")) continue;
      changes.callers.push("due");
      effects.push(...this.#addNext(changes, clocks));
    }
    return effects;
  }

  /** Adds one change of a room at a time, so that each caller knows the outcome of the change before it. */
  #addNext(changes: RoomChanges, clocks: Clocks): ChangeQueueEffect[] {
    const effects: ChangeQueueEffect[] = [];
    while (changes.adding === undefined) {
      const caller = changes.callers.shift();
      if (caller === undefined) break;
      const isForgotten = this.#rooms.get(changes.room) !== changes;
      const change = isForgotten ? undefined : changes.pending.take();
      if (change === undefined) {
        effects.push(...settle(caller));
        continue;
      }
      changes.adding = caller;
      const { epoch, seq, edits } = change;
      const event = { type: "document.changed", ...placeOf(changes.room, clocks.date), epoch, seq, edits } as const;
      effects.push(this.#add(idOf("changed", changes.room, epoch, seq), event, { kind: "change", changes, change, caller }));
    }
    if (changes.adding === undefined && !changes.pending.isPending && this.#rooms.get(changes.room) === changes)
      this.#rooms.delete(changes.room);
    return effects;
  }

  #receiveSnapshot({ room, position, bytes, call }: ChangeQueueInput & { kind: "snapshot" }, date: UnixMillis): ChangeQueueEffect[] {
    if (!this.#isWanted(room)) return [{ kind: "settled", call }];
    const { epoch, seq } = position;
    const event = { type: "document.snapshot", ...placeOf(room, date), epoch, seq, bytes } as const;
    return [this.#add(idOf("snapshot", room, epoch, seq), event, { kind: "snapshot", room, call })];
  }

  /** A pending change is dropped, because the document is no longer readable. */
  #receiveDeleted({ room, call }: ChangeQueueInput & { kind: "deleted" }, date: UnixMillis): ChangeQueueEffect[] {
    this.#rooms.delete(room);
    if (!this.#isWanted(room)) return [{ kind: "settled", call }];
    return [this.#add(idOf("deleted", room), { type: "room.deleted", ...placeOf(room, date) }, { kind: "deleted", call })];
  }

  #add(id: string, event: WebhookEvent, adding: Adding): ChangeQueueEffect {
    this.#adds += 1;
    this.#adding.set(this.#adds, adding);
    return { kind: "add", add: this.#adds, id, event };
  }

  #receiveAdded(add: number, clocks: Clocks): ChangeQueueEffect[] {
    const adding = this.#takeAdding(add);
    if (adding === undefined) return [];
    if (adding.kind !== "change") return [{ kind: "settled", call: adding.call }];
    adding.changes.adding = undefined;
    return [...settle(adding.caller), ...this.#addNext(adding.changes, clocks)];
  }

  /** A failed change is due again later, and is queued at the latest before a checkpoint covers it. */
  #receiveFailure({ add, cause }: ChangeQueueInput & { kind: "add-failed" }, clocks: Clocks): ChangeQueueEffect[] {
    const adding = this.#takeAdding(add);
    switch (adding?.kind) {
      case undefined:
        return [];
      case "change": {
        const { changes, change, caller } = adding;
        changes.pending.putBack(change, clocks.now);
        changes.adding = undefined;
        const failed: ChangeQueueEffect =
          caller === "due" ? { kind: "warn", of: "change", room: changes.room, cause } : { kind: "rejected", call: caller, cause };
        return [failed, ...this.#addNext(changes, clocks)];
      }
      case "snapshot": // The snapshot is saved in any case, and the next one is announced.
        return [
          { kind: "warn", of: "snapshot", room: adding.room, cause },
          { kind: "settled", call: adding.call },
        ];
      case "deleted":
        return [{ kind: "rejected", call: adding.call, cause }];
      default:
        return assertNever(adding);
    }
  }

  #takeAdding(add: number): Adding | undefined {
    const adding = this.#adding.get(add);
    this.#adding.delete(add);
    return adding;
  }
}

function settle(caller: Caller): ChangeQueueEffect[] {
  return caller === "due" ? [] : [{ kind: "settled", call: caller }];
}

/** Without a full stop: it separates the signed parts of a webhook, and users choose the names of rooms. */
function idOf(event: string, room: RoomKey, ...position: readonly number[]): string {
  return [event, room.replace(".", "/"), ...position].join("-");
}

function placeOf(room: RoomKey, at: UnixMillis): { tenant: string; room: string; at: number } {
  return { tenant: tenantOf(room), room: roomOf(room), at };
}

type PendingChangeOptions = { readonly webhookQuietMs: number; readonly webhookChangeMsMax: number };
/** `edits`: number of edits since the last announced change. */
type AnnouncedChange = Position & { readonly edits: number };

/** A room's edits since its last announced change. */
export class PendingChange {
  readonly #options: PendingChangeOptions;
  #change: AnnouncedChange | undefined;
  #since = 0 as Millis;
  #last = 0 as Millis;
  /** After a failure, also a change that is overdue waits for a quiet time. */
  #notBefore = 0 as Millis;

  constructor(options: PendingChangeOptions) {
    this.#options = options;
  }

  get isPending(): boolean {
    return this.#change !== undefined;
  }

  receiveEdits({ epoch, seq }: Position, edits: number, now: Millis): void {
    if (this.#change === undefined) this.#since = now;
    this.#last = now;
    this.#change = { epoch, seq, edits: (this.#change?.edits ?? 0) + edits };
  }

  isDue(now: Millis): boolean {
    const { webhookQuietMs, webhookChangeMsMax } = this.#options;
    if (!this.isPending || now < this.#notBefore) return false;
    return now - this.#last >= webhookQuietMs || now - this.#since >= webhookChangeMsMax;
  }

  /** Returns the change to announce, which then counts as announced. */
  take(): AnnouncedChange | undefined {
    const change = this.#change;
    this.#change = undefined;
    return change;
  }

  /** The change could not be announced. It is announced together with later edits. */
  putBack(change: AnnouncedChange, now: Millis): void {
    const newer = this.#change;
    this.#change = newer === undefined ? change : { ...newer, edits: newer.edits + change.edits };
    this.#notBefore = (now + this.#options.webhookQuietMs) as Millis;
  }
}
