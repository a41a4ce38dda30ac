/**
 * Ends the turn of rooms with edits, so that each forwards the edits of the turn in one message. `fair-forwarding.ts`
 * decides which rooms wait for further edits.
 */

import { Alarm, Alarms } from "../../shared/time/alarm.ts";
import type { HostDeps } from "../host-deps.ts";
import { FairForwarding, type FairForwardingOptions } from "./fair-forwarding.ts";
import type { DirectoryEntry } from "./room-directory.ts";

export class EditForwarding {
  readonly #endTurnOf: (followed: DirectoryEntry) => void;
  readonly #deps: HostDeps;
  readonly #fair: FairForwarding<DirectoryEntry>;
  readonly #waiting: Alarm;
  #isTurnEnding = false;

  /** `endTurnOf`: the room sends its waiting edits. */
  constructor(endTurnOf: (followed: DirectoryEntry) => void, options: FairForwardingOptions, deps: HostDeps) {
    this.#endTurnOf = endTurnOf;
    this.#deps = deps;
    this.#fair = new FairForwarding(options);
    this.#waiting = new Alarm(() => this.#endTurn(), new Alarms(deps));
  }

  receiveEdit(followed: DirectoryEntry, bytes: number): void {
    this.#fair.receiveEdit(followed, bytes);
    if (this.#isTurnEnding) return;
    this.#isTurnEnding = true;
    this.#deps.endOfTurn(() => this.#endTurn());
  }

  /** All waiting rooms send their edits. */
  stop(): void {
    this.#waiting.callOff();
    for (const followed of this.#fair.takeAll()) this.#endTurnOf(followed);
  }

  #endTurn(): void {
    this.#isTurnEnding = false;
    const { rooms, gathered, dueAt } = this.#fair.takeDue(this.#deps.clock.now());
    for (const followed of rooms) this.#endTurnOf(followed);
    if (gathered > 0) this.#deps.metrics.forwardsGathered.inc(gathered);
    if (dueAt !== undefined) this.#waiting.setFor(dueAt);
  }
}
