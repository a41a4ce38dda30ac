/** Lets clients of y-websocket in while there are places, and knows who is there until all that they wrote is saved. */

import type { YWebsocketMetrics } from "./metrics.ts";
import type { Places } from "./places.ts";
import type { TurnedAway, YDoor, YListener, YSeat, YSocket } from "./ports.ts";
import type { YClient } from "./y-client.ts";

export type ReceptionDeps = {
  readonly places: Places;
  readonly metrics: Pick<YWebsocketMetrics, "clients" | "turnedAway" | "closes">;
  readonly newClient: (seat: YSeat, socket: YSocket) => Pick<YClient, "receiveBytes" | "receive" | "receiveClosed">;
};

export class Reception implements YDoor {
  readonly #deps: ReceptionDeps;
  /** Each until its client has left, and what it wrote is saved. */
  readonly #visits = new Set<Promise<void>>();
  #isClosing = false;

  constructor(deps: ReceptionDeps) {
    this.#deps = deps;
  }

  mayEnter({ place }: YSeat): TurnedAway | undefined {
    return this.#isClosing ? "stopping" : this.#deps.places.reasonAgainst(place);
  }

  enter(seat: YSeat, socket: YSocket): YListener {
    const client = this.#deps.newClient(seat, socket);
    let receiveClosed = (): void => {};
    const visit = new Promise<void>((resolve) => (receiveClosed = () => resolve(client.receiveClosed()))).finally(() => {
      this.#visits.delete(visit);
      this.#deps.places.giveBack(seat.place);
      this.#countClients();
    });
    this.#visits.add(visit);
    this.#deps.places.take(seat.place);
    this.#countClients();
    return { receiveBytes: (count) => client.receiveBytes(count), receive: (bytes) => client.receive(bytes), receiveClosed };
  }

  receiveTurnedAway(reason: TurnedAway): void {
    this.#deps.metrics.turnedAway.inc({ reason });
  }

  receiveTooLarge(): void {
    this.#deps.metrics.closes.inc({ code: "1009" });
  }

  /** From here on nobody is let in. */
  close(): void {
    this.#isClosing = true;
  }

  /** Resolves once everybody who is there has left, and what they wrote is saved or its time is up. */
  async left(): Promise<void> {
    await Promise.all(this.#visits);
  }

  #countClients(): void {
    this.#deps.metrics.clients.set(this.#deps.places.taken);
  }
}
