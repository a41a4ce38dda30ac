/**
 * Admits new connections at the gateway's rate. A connection has no session before it is admitted, so it joins no room
 * and its frames wait in the admission queue.
 *
 * A connection is upgraded to a WebSocket before it waits in the admission queue: uWebSockets.js before 20.70 may close
 * a socket that is upgraded later than in its handler (uNetworking/uWebSockets#1929), so the upgrade cannot wait.
 */

import type { ClientAddress } from "../../shared/limits/client-address.ts";
import type { CloseName } from "../../shared/wire/close-codes.ts";
import { encodeFrame } from "../../shared/wire/codec.ts";
import type { HostDeps } from "../host-deps.ts";
import type { DisciplineHost, RejectionNotice } from "../limits/discipline-host.ts";
import type { Quotas } from "../limits/quotas.ts";
import type { ConnectionId, Sockets } from "../ports.ts";
import { AdmissionQueue, type AdmissionQueueOptions } from "./admission-queue.ts";
import type { SessionCounts } from "./session-counts-host.ts";
import { closingEffects } from "./session-effects.ts";

type ArrivalsPorts = {
  readonly sockets: Pick<Sockets, "send">;
  readonly quotas: Quotas;
  readonly discipline: DisciplineHost;
  readonly counts: SessionCounts;
  readonly isDraining: () => boolean;
  /** `frames`: what the connection has sent while it waited. */
  readonly open: (connection: ConnectionId, frames: readonly Uint8Array[]) => void;
  readonly close: (connection: ConnectionId, close: CloseName) => void;
};

/** `retryAfterMs`: delay that a client is asked to wait when it is rejected because of load. */
export type ArrivalsOptions = { readonly admission: AdmissionQueueOptions; readonly session: { readonly retryAfterMs: number } };

type Rejection = Omit<RejectionNotice, "close"> & { readonly close: CloseName; readonly address?: ClientAddress | undefined };

const ADMISSION_MS = 10;
const STOPPING: Rejection = { close: "goingAway", message: "this gateway stops: connect to another", retryAfterMs: 0 };

export class Arrivals {
  readonly #ports: ArrivalsPorts;
  readonly #overload: Rejection;
  readonly #deps: Pick<HostDeps, "clock" | "metrics">;
  readonly #queue: AdmissionQueue<ConnectionId>;
  #isAdmittingLater = false;

  constructor(ports: ArrivalsPorts, { admission, session }: ArrivalsOptions, deps: Pick<HostDeps, "clock" | "metrics">) {
    this.#ports = ports;
    this.#overload = { ...session, close: "overloaded", message: "too many connections come at once: try again later" };
    this.#deps = deps;
    this.#queue = new AdmissionQueue(admission, deps.clock.now());
  }

  /** A queued connection also counts for its address. Otherwise one address could fill the queue. */
  receiveConnection(connection: ConnectionId, address: ClientAddress | undefined): void {
    const { discipline, quotas } = this.#ports;
    const ban = discipline.receiveConnection(address);
    if (ban !== undefined) return this.#reject(connection, { ...ban, address });
    quotas.receiveConnection(connection, address);
    const decision = this.#queue.receiveConnection(connection, this.#deps.clock.now());
    if (decision === "admitted") return this.#admit(connection, []);
    if (decision === "rejected") return this.#rejectForLoad(connection);
    this.#noteWaiting();
    this.#admitLater();
  }

  /** The connection has no session. */
  receiveFrame(connection: ConnectionId, bytes: Uint8Array): void {
    if (this.#queue.receiveFrame(connection, bytes) !== "rejected") return;
    this.#noteWaiting();
    this.#rejectForLoad(connection);
  }

  receiveDisconnection(connection: ConnectionId): void {
    this.#queue.remove(connection);
    this.#noteWaiting();
  }

  /** Closes the waiting connections. Otherwise they would lose their sockets without a close code. */
  stop(): void {
    for (const connection of this.#queue.connections()) this.#reject(connection, STOPPING);
  }

  #admitLater(): void {
    if (this.#isAdmittingLater) return;
    this.#isAdmittingLater = true;
    this.#deps.clock.after(ADMISSION_MS, () => {
      this.#isAdmittingLater = false;
      for (const { connection, waitedMs, frames } of this.#queue.admitDue(this.#deps.clock.now())) {
        this.#deps.metrics.connectWaitSeconds.observe(waitedMs / 1000);
        this.#admit(connection, frames);
      }
      this.#noteWaiting();
      if (this.#queue.size > 0) this.#admitLater();
    });
  }

  #admit(connection: ConnectionId, frames: readonly Uint8Array[]): void {
    const { discipline, quotas } = this.#ports;
    if (this.#ports.isDraining()) return this.#reject(connection, STOPPING); // The connection has waited too long.
    const ban = discipline.receiveAddress(quotas.addressOf(connection));
    if (ban !== undefined) return this.#reject(connection, ban);
    this.#ports.open(connection, frames);
  }

  #noteWaiting(): void {
    this.#deps.metrics.connectsWaiting.set(this.#queue.size);
  }

  #rejectForLoad(connection: ConnectionId): void {
    this.#deps.metrics.turnedAway.inc({ reason: "herd" });
    this.#reject(connection, this.#overload);
  }

  #reject(connection: ConnectionId, { close, message, retryAfterMs, address }: Rejection): void {
    const { counts, quotas, sockets } = this.#ports;
    counts.countRefused({ close, tenant: undefined, address: address ?? quotas.addressOf(connection) });
    for (const effect of closingEffects(close, message, retryAfterMs)) {
      if (effect.kind === "send") sockets.send(connection, encodeFrame(effect.frame));
      else this.#ports.close(connection, effect.close);
    }
  }
}
