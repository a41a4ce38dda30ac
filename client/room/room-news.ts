/**
 * Tells an application what of a room is another than it was told last: its status, how far it has come, what is saved.
 * Each fact as it is when its turn comes, for a listener before it may have made an edit.
 */

import type { Seq } from "../../shared/ids.ts";
import type { SavingState } from "../../shared/wire/frames.ts";
import type { Outage } from "../connection/connection-messages.ts";
import type { Events } from "../events.ts";
import type { RoomEvents, Status } from "./room-events.ts";

/** A view that goes along. */
export type RoomFacts = {
  readonly status: Status;
  readonly synced: boolean;
  readonly saved: boolean;
  readonly stored: boolean;
  readonly saving: SavingState;
  readonly seq: Seq;
};
/** What goes with them. */
export type RoomCauses = { readonly outage: Outage | undefined };

export class RoomNews {
  readonly #facts: RoomFacts & RoomCauses;
  readonly #events: Events<RoomEvents>;
  #toldWhy: string | undefined;
  readonly #told: { -readonly [Name in keyof RoomFacts]: RoomFacts[Name] };

  constructor(facts: RoomFacts & RoomCauses, events: Events<RoomEvents>) {
    const { status, synced, saved, stored, saving, seq } = facts;
    this.#facts = facts;
    this.#events = events;
    this.#told = { status, synced, saved, stored, saving, seq };
  }

  tell(): void {
    this.#tell("seq", (seq) => this.#events.emit("seq", seq));
    this.#tellStatus();
    this.#tell("saving", (saving) => this.#events.emit("saving", saving));
    this.#tell("synced", (synced) => this.#events.emit("synced", synced));
    this.#tell("stored", (stored) => this.#events.emit("stored", stored));
    this.#tell("saved", (saved) => this.#events.emit("saved", saved));
  }

  /** Also where it waits for another reason than before. */
  #tellStatus(): void {
    const { status, outage } = this.#facts;
    if (status === this.#told.status && outage?.why === this.#toldWhy) return;
    this.#told.status = status;
    this.#toldWhy = outage?.why;
    this.#events.emit("status", { status, ...outage });
  }

  #tell<Name extends keyof RoomFacts>(name: Name, emit: (value: RoomFacts[Name]) => void): void {
    const value: RoomFacts[Name] = this.#facts[name];
    if (value === this.#told[name]) return;
    this.#told[name] = value;
    emit(value);
  }
}
