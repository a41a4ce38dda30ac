/**
 * Stands before the sessions: lets connections in as `admission.ts` decides, and keeps what those say meanwhile who
 * wait for their turn. They are WebSockets already: uWebSockets.js before 20.70 may close a socket that is upgraded
 * later than in its handler (uNetworking/uWebSockets#1929), so waiting is done behind the upgrade and not before it.
 */

import type { Clock } from "../../shared/clock.ts";
import { Admission, type AdmissionOptions } from "../limits/admission.ts";
import type { ClientAddress } from "../../shared/client-address.ts";
import type { GatewayMetrics } from "../metrics.ts";
import type { Clients, ConnectionId, Pace } from "../ports.ts";

/** `connectQueueBytesMax`: of what all who wait have said, with what it takes to keep it. */
export type LobbyOptions = AdmissionOptions & { readonly connectQueueBytesMax: number };

/** Who is behind it, and hears of those too that are not let in: to tell them when to come back, and to close them. */
export type Inside = Clients & {
  /** It came, and has not waited yet. False: it is not to, and has been closed. */
  receiveKnock(connection: ConnectionId, address: ClientAddress | undefined): boolean;
  receiveTurnedAway(connection: ConnectionId): void;
};

type Waiting = { readonly address: ClientAddress | undefined; readonly said: Uint8Array[] };

const STEP_MS = 10;
/** What an array of bytes takes beside its bytes: without it empty frames would be kept without end. */
const KEPT_FRAME_BYTES = 200;

export class LobbyHost implements Clients {
  readonly #admission: Admission<ConnectionId>;
  readonly #options: LobbyOptions;
  readonly #inside: Inside;
  readonly #deps: { readonly clock: Clock; readonly metrics: GatewayMetrics };
  readonly #waiting = new Map<ConnectionId, Waiting>();
  #bytes = 0;
  #isStepping = false;

  constructor(inside: Inside, options: LobbyOptions, deps: { clock: Clock; metrics: GatewayMetrics }) {
    this.#inside = inside;
    this.#options = options;
    this.#admission = new Admission(options, deps.clock.now());
    this.#deps = deps;
  }

  receiveConnection(connection: ConnectionId, address: ClientAddress | undefined): void {
    if (!this.#inside.receiveKnock(connection, address)) return; // It takes nobody's turn.
    const decision = this.#admission.knock(connection, this.#deps.clock.now());
    if (decision === "come-in") return this.#inside.receiveConnection(connection, address);
    if (decision === "turn-away") return this.#inside.receiveTurnedAway(connection);
    this.#waiting.set(connection, { address, said: [] });
    this.#noteWaiting();
    if (!this.#isStepping) this.#stepLater();
  }

  receiveFrame(connection: ConnectionId, bytes: Uint8Array): void {
    const waiting = this.#waiting.get(connection);
    if (waiting === undefined) return this.#inside.receiveFrame(connection, bytes);
    const keptBytes = bytesToKeep(bytes);
    if (this.#bytes + keptBytes > this.#options.connectQueueBytesMax) {
      this.#leave(connection);
      return this.#inside.receiveTurnedAway(connection);
    }
    this.#bytes += keptBytes;
    waiting.said.push(bytes.slice());
  }

  receivePace(connection: ConnectionId, pace: Pace): void {
    this.#inside.receivePace(connection, pace);
  }

  receiveDisconnection(connection: ConnectionId): void {
    this.#leave(connection);
    this.#inside.receiveDisconnection(connection);
  }

  #stepLater(): void {
    this.#isStepping = true;
    this.#deps.clock.after(STEP_MS, () => {
      for (const { guest, waitedMs } of this.#admission.admit(this.#deps.clock.now())) {
        this.#deps.metrics.connectWaitSeconds.observe(waitedMs / 1000);
        this.#enter(guest);
      }
      this.#isStepping = false;
      if (this.#admission.waiting > 0) this.#stepLater();
    });
  }

  #enter(connection: ConnectionId): void {
    const waiting = this.#leave(connection);
    if (waiting === undefined) return;
    this.#inside.receiveConnection(connection, waiting.address);
    for (const bytes of waiting.said) this.#inside.receiveFrame(connection, bytes);
  }

  /** It does not wait any more. Undefined: it did not. */
  #leave(connection: ConnectionId): Waiting | undefined {
    const waiting = this.#waiting.get(connection);
    if (waiting === undefined) return undefined;
    this.#waiting.delete(connection);
    this.#admission.leave(connection);
    this.#bytes -= waiting.said.reduce((sum, bytes) => sum + bytesToKeep(bytes), 0);
    this.#noteWaiting();
    return waiting;
  }

  #noteWaiting(): void {
    this.#deps.metrics.connectsWaiting.set(this.#waiting.size);
  }
}

function bytesToKeep({ byteLength }: Uint8Array): number {
  return byteLength + KEPT_FRAME_BYTES;
}
