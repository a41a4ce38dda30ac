/**
 * Room owners of this process, for a gateway of the same process: its edits need not pass through NATS (ADR 0048). They
 * are passed as they are, without encoding: both sides treat messages as immutable, and the owner copies payloads. An
 * owner gets a message here only while it alone orders the room's edits, in the epoch that the gateway knows. For
 * example, after another server claimed epoch 7, the owner of epoch 6 gets nothing here. The target of a handover and a
 * later owner are reached only over NATS.
 */

import type { Epoch, RoomKey } from "../ids.ts";
import type { ToOwner } from "./envelope.ts";

export interface LocalOwner {
  /** The epoch in which this owner takes all edits. Undefined: it does not own the room, or is handing it over. */
  readonly openEpoch: Epoch | undefined;
  receiveMessage(message: ToOwner): void;
}

export class LocalOwners {
  readonly #owners = new Map<RoomKey, LocalOwner>();

  add(room: RoomKey, owner: LocalOwner): void {
    this.#owners.set(room, owner);
  }

  /** An entry of a later owner of the room stays. */
  remove(room: RoomKey, owner: LocalOwner): void {
    if (this.#owners.get(room) === owner) this.#owners.delete(room);
  }

  /** `epoch`: the newest that the sender knows. False: the message has to be sent over NATS. */
  deliver(room: RoomKey, message: ToOwner, epoch: Epoch): boolean {
    const owner = this.#owners.get(room);
    if (owner === undefined || owner.openEpoch !== epoch) return false;
    owner.receiveMessage(message);
    return true;
  }
}
