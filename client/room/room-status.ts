/** The status that an application sees: the room's own status, or the status of its connection while it is not connected. */

import type { Millis, Seq } from "../../shared/ids.ts";
import type { SavingState } from "../../shared/wire/frames.ts";
import type { ConnectionStatus, Outage } from "../connection/connection-messages.ts";
import type { Events } from "../events.ts";
import type { JoinRetry, RoomStatus } from "./join-state.ts";
import type { RoomEvents, Status } from "./room-events.ts";

/** `outage` is set while the client waits for the next attempt. */
export type ReportedStatus = { readonly status: ConnectionStatus; readonly outage: Outage | undefined };

type Room = { readonly status: RoomStatus; readonly joinRetry: JoinRetry | undefined };
type ConnectionFacts = { readonly status: ConnectionStatus; readonly outage: Outage | undefined };

/** In these states the room does not depend on its connection. */
const SETTLED: ReadonlySet<ConnectionStatus> = new Set(["disconnected", "stopped", "waiting"]);

export function reportedStatusOf(room: Room, connection: ConnectionFacts, now: Millis): ReportedStatus {
  const status = SETTLED.has(room.status) || connection.status === "connected" ? room.status : connection.status;
  if (status !== "waiting") return { status, outage: undefined };
  if (room.joinRetry === undefined) return { status, outage: connection.outage };
  const { reason, message: why, until } = room.joinRetry;
  return { status, outage: { why, retryInMs: Math.max(0, until - now), reason } };
}

/** A live view of the room. */
type RoomFacts = {
  readonly status: Status;
  readonly synced: boolean;
  readonly saved: boolean;
  readonly stored: boolean;
  readonly saving: SavingState;
  readonly seq: Seq;
};
/** Sent along with the status. */
type RoomCauses = { readonly outage: Outage | undefined };

/**
 * Emits an event for each fact that differs from the last reported value. Each fact is read when its event is due,
 * because a listener of an earlier event may have made an edit.
 */
export class RoomStatusReporter {
  readonly #facts: RoomFacts & RoomCauses;
  readonly #events: Events<RoomEvents>;
  #reportedWhy: string | undefined;
  /** Time until the next attempt at the last report. Within one wait it only becomes shorter. */
  #retryInMs = 0;
  readonly #reported: { -readonly [Name in keyof RoomFacts]: RoomFacts[Name] };

  constructor(facts: RoomFacts & RoomCauses, events: Events<RoomEvents>) {
    const { status, synced, saved, stored, saving, seq } = facts;
    this.#facts = facts;
    this.#events = events;
    this.#reported = { status, synced, saved, stored, saving, seq };
  }

  report(): void {
    this.#reportFact("seq", (seq) => this.#events.emit("seq", seq));
    this.#reportStatus();
    this.#reportFact("saving", (saving) => this.#events.emit("saving", saving));
    this.#reportFact("synced", (synced) => this.#events.emit("synced", synced));
    this.#reportFact("stored", (stored) => this.#events.emit("stored", stored));
    this.#reportFact("saved", (saved) => this.#events.emit("saved", saved));
  }

  /** Also emits if only the reason of the wait has changed, or another wait has begun for the same reason. */
  #reportStatus(): void {
    const { status, outage } = this.#facts;
    const { why, retryInMs = 0 } = outage ?? {};
    const isSameWait = why === this.#reportedWhy && retryInMs <= this.#retryInMs;
    this.#retryInMs = retryInMs;
    if (status === this.#reported.status && isSameWait) return;
    this.#reported.status = status;
    this.#reportedWhy = why;
    this.#events.emit("status", { status, ...outage });
  }

  #reportFact<Name extends keyof RoomFacts>(name: Name, emit: (value: RoomFacts[Name]) => void): void {
    const value: RoomFacts[Name] = this.#facts[name];
    if (value === this.#reported[name]) return;
    this.#reported[name] = value;
    emit(value);
  }
}
