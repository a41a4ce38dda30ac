/**
 * Connections taken past the limit of their address or tenant, on credit: each may come in place of a line that was lost
 * and is counted until nothing was heard on it for long. By then either such a line is gone and the connection has its
 * place, or it is one too many and ends.
 */

import type { Millis } from "../../shared/ids.ts";
import type { ConnectionId } from "../ports.ts";

export type CreditKind = "ip" | "tenant";

type Credit = { readonly key: string; readonly until: Millis };
/** `byKey`: the oldest first, and so in `given`, where they end in that order. */
type Given = { readonly given: Map<ConnectionId, Credit>; readonly byKey: Map<string, Set<ConnectionId>> };

export class Credits {
  readonly #creditMs: number;
  readonly #of: Readonly<Record<CreditKind, Given>> = {
    ip: { given: new Map(), byKey: new Map() },
    tenant: { given: new Map(), byKey: new Map() },
  };

  constructor({ creditMs }: { creditMs: number }) {
    this.#creditMs = creditMs;
  }

  get size(): number {
    return this.#of.ip.given.size + this.#of.tenant.given.size;
  }

  /** `key`: the address or the tenant. */
  give(kind: CreditKind, key: string, connection: ConnectionId, now: Millis): void {
    const { given, byKey } = this.#of[kind];
    given.set(connection, { key, until: (now + this.#creditMs) as Millis });
    const waiting = byKey.get(key);
    if (waiting === undefined) byKey.set(key, new Set([connection]));
    else waiting.add(connection);
  }

  /** It is gone. `over`: how many more are counted than the limit allows; so many still wait for a place, and the oldest others have one. */
  receiveGone(kind: CreditKind, key: string, connection: ConnectionId, over: number): void {
    this.#drop(kind, connection);
    const waiting = this.#of[kind].byKey.get(key);
    if (waiting === undefined) return;
    for (const placed of waiting) {
      if (waiting.size <= over) return;
      this.#drop(kind, placed);
    }
  }

  /** One whose credit has ended, each once. */
  takeEnded(kind: CreditKind, now: Millis): ConnectionId | undefined {
    const [oldest] = this.#of[kind].given;
    if (oldest === undefined || oldest[1].until > now) return undefined;
    this.#drop(kind, oldest[0]);
    return oldest[0];
  }

  #drop(kind: CreditKind, connection: ConnectionId): void {
    const { given, byKey } = this.#of[kind];
    const credit = given.get(connection);
    if (credit === undefined) return;
    given.delete(connection);
    const waiting = byKey.get(credit.key)!;
    waiting.delete(connection);
    if (waiting.size === 0) byKey.delete(credit.key);
  }
}
