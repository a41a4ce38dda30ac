/**
 * Connections taken past the limit of their address or tenant, on credit: each may come in place of a line that was lost
 * and is counted until nothing was heard on it for long. By then either such a line is gone and the connection has its
 * place, or it is one too many and ends.
 */

import type { Millis } from "../../shared/ids.ts";
import type { ConnectionId } from "../ports.ts";

export type CreditKind = "ip" | "tenant";

export class Credits {
  readonly #creditMs: number;
  /** Until when, in the order in which they end. */
  readonly #until: Readonly<Record<CreditKind, Map<ConnectionId, Millis>>> = { ip: new Map(), tenant: new Map() };

  constructor({ creditMs }: { creditMs: number }) {
    this.#creditMs = creditMs;
  }

  get size(): number {
    return this.#until.ip.size + this.#until.tenant.size;
  }

  give(kind: CreditKind, connection: ConnectionId, now: Millis): void {
    this.#until[kind].set(connection, (now + this.#creditMs) as Millis);
  }

  /** It is gone. */
  drop(connection: ConnectionId): void {
    this.#until.ip.delete(connection);
    this.#until.tenant.delete(connection);
  }

  /** One whose credit has ended, each once. */
  takeEnded(kind: CreditKind, now: Millis): ConnectionId | undefined {
    const [oldest] = this.#until[kind];
    if (oldest === undefined || oldest[1] > now) return undefined;
    this.#until[kind].delete(oldest[0]);
    return oldest[0];
  }
}
