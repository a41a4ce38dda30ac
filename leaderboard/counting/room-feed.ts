/**
 * Passes records and outcomes to the rooms of a pass, and the rooms' effects to the pass. The first record creates a room.
 * A room counts only after new activities are certain to get numbers above the room's counted number.
 */

import { isDeletedRecord, type StoredRecord } from "../../shared/bus/record.ts";
import type { Millis, RoomKey } from "../../shared/ids.ts";
import type { BoardRoomInput } from "./board-room-messages.ts";
import { BoardRoom, type BoardRoomOptions } from "./board-room.ts";
import type { PassEffect } from "./pass-messages.ts";
import type { PassRooms } from "./pass-rooms.ts";
import { decodeReceived, type Source } from "./received.ts";

/** Receives the effects of the pass's rooms. */
type RoomFeedPass = {
  readonly effect: (effect: PassEffect) => void;
  readonly fail: (reason: "stale" | "gap", message: string) => void;
  readonly setAside: (room: RoomKey, cause: unknown) => void;
  /** The room received an outcome. */
  readonly settle: (room: BoardRoom) => void;
  readonly isOver: () => boolean;
};

export class RoomFeed {
  readonly activitiesEnd = new ActivitiesEnd<BoardRoom>();
  /** The time of the current input. */
  now = 0 as Millis;
  readonly #rooms: PassRooms;
  readonly #options: BoardRoomOptions & { refusesGaps?: boolean };
  readonly #pass: RoomFeedPass;

  constructor(rooms: PassRooms, options: BoardRoomOptions, pass: RoomFeedPass) {
    this.#rooms = rooms;
    this.#options = { ...options };
    this.#pass = pass;
  }

  /** Applies to all rooms, from the next record. */
  set refusesGaps(refusesGaps: boolean) {
    this.#options.refusesGaps = refusesGaps;
  }

  newRoom(key: RoomKey): BoardRoom {
    return new BoardRoom(key, this.#options);
  }

  receiveRecord(source: Source, stored: StoredRecord): void {
    const { room, streamSeq, bytes } = stored;
    if (source === "edits" && isDeletedRecord(bytes)) return this.feed(this.#room(room), { kind: "deleted", streamSeq });
    const decoded = decodeReceived(source, stored);
    if (decoded.kind === "unreadable") this.#pass.effect({ kind: "record-undecodable", source, stored });
    if (decoded.kind !== "received") return;
    this.#rooms.receiveEntries(decoded.received.entries);
    this.feed(this.#room(room), { kind: "received", received: decoded.received });
  }

  feed(room: BoardRoom, input: BoardRoomInput): void {
    for (const effect of room.receiveInput(input, this.now)) {
      switch (effect.kind) {
        case "confirm-activities":
          if (!this.#pass.isOver()) this.confirmActivities(this.activitiesEnd.confirm(room, effect.counted));
          break;
        case "set-aside":
          this.#pass.setAside(room.key, effect.cause);
          break;
        case "fail":
          this.#pass.fail(effect.reason, effect.message);
          break;
        case "counted":
        case "edits-missing":
          this.#pass.effect({ ...effect, room: room.key });
          break;
        case "boards-removed":
          this.#pass.effect(effect);
          break;
        default:
          this.#pass.effect({ kind: "room", room, request: effect });
      }
    }
    this.#rooms.settle(room);
  }

  confirmActivities(effects: readonly ActivitiesEndEffect<BoardRoom>[]): void {
    for (const effect of effects) {
      if (effect.kind !== "confirmed") {
        this.#pass.effect(effect);
        continue;
      }
      this.feed(effect.waiter, { kind: "activities-confirmed" });
      this.#pass.settle(effect.waiter);
    }
  }

  #room(key: RoomKey): BoardRoom {
    const known = this.#rooms.get(key);
    if (known !== undefined) return known;
    const room = this.newRoom(key);
    this.#rooms.add(room);
    this.feed(room, { kind: "open" });
    return room;
  }
}

/** `confirmed`: the room may count. `skip`: let the stream continue after `through`. */
type ActivitiesEndEffect<Waiter> =
  | { readonly kind: "read-activities-end" | "read-activities-now" }
  | { readonly kind: "skip-activities"; readonly end: number; readonly through: number }
  | { readonly kind: "confirmed"; readonly waiter: Waiter };

type State =
  | { readonly kind: "idle" | "asking" }
  | { readonly kind: "waiting"; readonly until: Millis }
  | { readonly kind: "asking-again" }
  | { readonly kind: "reading" | "skipping"; readonly through: number };

/** A JetStream leader that was just elected may not know its own end, so it is asked again after this time. */
const ELECTED_MS = 1_000;

/**
 * Confirms that new activities get stream sequences above the counted ones. A stream restored from an older backup ends
 * before the counted number. Its new activities would get numbers that are already counted, and would never count. So
 * the stream is made to continue after the counted number.
 */
export class ActivitiesEnd<Waiter> {
  #end = 0;
  #state: State = { kind: "idle" };
  #waiting: { readonly waiter: Waiter; readonly counted: number }[] = [];
  /** Callers that began to wait before the first answer. The question is repeated for them. */
  #asked = new Set<Waiter>();

  /** Time at which `tick` has to be called. */
  get dueAt(): Millis | undefined {
    return this.#state.kind === "waiting" ? this.#state.until : undefined;
  }

  confirm(waiter: Waiter, counted: number): ActivitiesEndEffect<Waiter>[] {
    if (counted <= this.#end) return [{ kind: "confirmed", waiter }];
    this.#waiting.push({ waiter, counted });
    return this.#state.kind === "idle" ? this.#ask() : [];
  }

  receiveEnd(end: number, now: Millis): ActivitiesEndEffect<Waiter>[] {
    const confirmed = this.#raise(end);
    if (this.#waiting.length === 0) return this.#rest(confirmed);
    if (this.#state.kind === "asking") {
      this.#asked = new Set(this.#waiting.map(({ waiter }) => waiter));
      this.#state = { kind: "waiting", until: (now + ELECTED_MS) as Millis };
      return confirmed;
    }
    const askedTwice = this.#waiting.filter(({ waiter }) => this.#asked.has(waiter));
    if (askedTwice.length === 0) return [...confirmed, ...this.#ask()];
    this.#state = { kind: "reading", through: Math.max(...askedTwice.map(({ counted }) => counted)) };
    return [...confirmed, { kind: "read-activities-now" }]; // Counts the stream's entries for other rooms first.
  }

  tick(now: Millis): ActivitiesEndEffect<Waiter>[] {
    if (this.#state.kind !== "waiting" || now < this.#state.until) return [];
    this.#state = { kind: "asking-again" };
    return [{ kind: "read-activities-end" }];
  }

  receiveReadNow(): ActivitiesEndEffect<Waiter>[] {
    if (this.#state.kind !== "reading") return [];
    const { through } = this.#state;
    this.#state = { kind: "skipping", through };
    return [{ kind: "skip-activities", end: this.#end, through }];
  }

  receiveSkipped(through: number): ActivitiesEndEffect<Waiter>[] {
    const confirmed = this.#raise(through);
    return this.#waiting.length === 0 ? this.#rest(confirmed) : [...confirmed, ...this.#ask()];
  }

  #ask(): ActivitiesEndEffect<Waiter>[] {
    this.#state = { kind: "asking" };
    return [{ kind: "read-activities-end" }];
  }

  #rest(effects: ActivitiesEndEffect<Waiter>[]): ActivitiesEndEffect<Waiter>[] {
    this.#state = { kind: "idle" };
    return effects;
  }

  #raise(end: number): ActivitiesEndEffect<Waiter>[] {
    this.#end = Math.max(this.#end, end);
    const confirmed = this.#waiting.filter(({ counted }) => counted <= this.#end);
    this.#waiting = this.#waiting.filter(({ counted }) => counted > this.#end);
    return confirmed.map(({ waiter }) => ({ kind: "confirmed", waiter }));
  }
}
