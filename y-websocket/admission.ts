/**
 * Admits clients of y-websocket while there are places. A client counts as present until it has left and all that it
 * wrote is saved, so that a stopping server waits for it.
 */

import type { YWebsocketMetrics } from "./metrics.ts";
import type { Places } from "./places.ts";
import type { YRejection, YClientAdmission, YListener, YSeat, YSocket } from "./ports.ts";
import type { YClient } from "./y-client.ts";

export type AdmissionDeps = {
  readonly places: Places;
  readonly metrics: Pick<YWebsocketMetrics, "clients" | "turnedAway" | "closes">;
  readonly newClient: (seat: YSeat, socket: YSocket) => Pick<YClient, "receiveBytes" | "receiveMessage" | "receiveClosed">;
};

export class YAdmission implements YClientAdmission {
  readonly #deps: AdmissionDeps;
  #presentCount = 0;
  #isClosing = false;
  #onEmpty = (): void => {};

  constructor(deps: AdmissionDeps) {
    this.#deps = deps;
  }

  mayEnter({ place }: YSeat): YRejection | undefined {
    return this.#isClosing ? "stopping" : this.#deps.places.reasonAgainst(place);
  }

  enter(seat: YSeat, socket: YSocket): YListener {
    const client = this.#deps.newClient(seat, socket);
    this.#presentCount += 1;
    this.#deps.places.take(seat.place);
    this.#countClients();
    return {
      receiveBytes: (count) => client.receiveBytes(count),
      receiveMessage: (bytes) => client.receiveMessage(bytes),
      receiveClosed: () => client.receiveClosed(() => this.#receiveLeft(seat)),
    };
  }

  receiveRejected(reason: YRejection): void {
    this.#deps.metrics.turnedAway.inc({ reason });
  }

  receiveTooLarge(): void {
    this.#deps.metrics.closes.inc({ code: "1009" });
  }

  /** Admits no further clients. */
  close(): void {
    this.#isClosing = true;
  }

  /** Calls `onEmpty` once all clients have left and their edits are saved, or the time for that is over. */
  whenEmpty(onEmpty: () => void): void {
    if (this.#presentCount === 0) onEmpty();
    else this.#onEmpty = onEmpty;
  }

  #receiveLeft(seat: YSeat): void {
    this.#presentCount -= 1;
    this.#deps.places.giveBack(seat.place);
    this.#countClients();
    if (this.#presentCount === 0) this.#onEmpty();
  }

  #countClients(): void {
    this.#deps.metrics.clients.set(this.#deps.places.taken);
  }
}
