/**
 * Sends a turn's messages to owners together, at the end of the turn: writes to NATS cost more than the rest of a join.
 * A room's edits go in one message. `fair-forwarding.ts` decides which rooms wait for further edits.
 */

import type { ToOwner } from "../../shared/bus/envelope.ts";
import type { RoomKey } from "../../shared/ids.ts";
import { Alarm, Alarms } from "../../shared/time/alarm.ts";
import type { HostDeps } from "../host-deps.ts";
import type { RoomOwners } from "../ports.ts";
import { FairForwarding, type FairForwardingOptions } from "./fair-forwarding.ts";
import type { DirectoryEntry, RoomDirectory } from "./room-directory.ts";

type EditForwardingPorts = {
  readonly owners: Pick<RoomOwners, "sendToOwner">;
  readonly directory: Pick<RoomDirectory, "get">;
  /** The room passes its waiting edits to `send`. */
  readonly endTurnOf: (followed: DirectoryEntry) => void;
};

export class EditForwarding {
  readonly #ports: EditForwardingPorts;
  readonly #deps: HostDeps;
  readonly #fair: FairForwarding<DirectoryEntry>;
  readonly #waiting: Alarm;
  #unsent: { readonly room: RoomKey; readonly message: ToOwner }[] = [];
  #isTurnEnding = false;

  constructor(ports: EditForwardingPorts, options: FairForwardingOptions, deps: HostDeps) {
    this.#ports = ports;
    this.#deps = deps;
    this.#fair = new FairForwarding(options);
    this.#waiting = new Alarm(() => this.#endTurn(), new Alarms(deps));
  }

  receiveEdit(followed: DirectoryEntry, bytes: number): void {
    this.#fair.receiveEdit(followed, bytes);
    this.#endTurnLater();
  }

  send(room: RoomKey, message: ToOwner): void {
    this.#unsent.push({ room, message });
    this.#endTurnLater();
  }

  /** Sends everything that waits. */
  stop(): void {
    this.#waiting.callOff();
    for (const followed of this.#fair.takeAll()) this.#ports.endTurnOf(followed);
    this.#sendUnsent();
  }

  #endTurnLater(): void {
    if (this.#isTurnEnding) return;
    this.#isTurnEnding = true;
    this.#deps.endOfTurn(() => this.#endTurn());
  }

  #endTurn(): void {
    this.#isTurnEnding = true;
    const { rooms, gathered, dueAt } = this.#fair.takeDue(this.#deps.clock.now());
    for (const followed of rooms) this.#ports.endTurnOf(followed);
    if (gathered > 0) this.#deps.metrics.forwardsGathered.inc(gathered);
    if (dueAt !== undefined) this.#waiting.setFor(dueAt);
    this.#sendUnsent();
  }

  #sendUnsent(): void {
    const unsent = this.#unsent;
    this.#unsent = [];
    const { owners, directory } = this.#ports;
    for (const { room, message } of unsent) {
      this.#deps.hops?.forwarded(room, message);
      owners.sendToOwner(room, message, directory.get(room)?.room.epoch);
    }
    this.#isTurnEnding = false;
  }
}
