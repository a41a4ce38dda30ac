/**
 * Detects that many connections are refused, for example because an application signs its tokens with a wrong key. Such
 * clients return all the time, and no room notices them. A refused connection is one that the gateway closes before its
 * token is accepted. The invariant: each reported beginning is followed by one reported end. Rules REFC1 to REFC5.
 */

import type { ConnectionsRefused } from "../../shared/bus/operations-events.ts";
import type { Millis, TenantId } from "../../shared/ids.ts";
import type { ClientAddress } from "../../shared/limits/client-address.ts";
import type { CloseName } from "../../shared/wire/close-codes.ts";

/** `tenant`: from a token with a valid signature. */
export type RefusedConnection = {
  readonly close: CloseName;
  readonly tenant: TenantId | undefined;
  readonly address: ClientAddress | undefined;
};

const WINDOW_MS = 10_000;
/** Number of refused connections in a window from which on they are reported. */
const REFUSED_MIN = 50;
/** Refusals are over after a minute with less than half of that rate. A hostile client could otherwise cause events all the time. */
const CALM_MS = 60_000;
const CALM_REFUSED_MAX = ((REFUSED_MIN / 2) * CALM_MS) / WINDOW_MS;
/** Values that are counted apart. One that caused half of the refusals is always among them. */
const COUNTED_MAX = 100;

export class RefusedConnections {
  #window: { readonly since: Millis; count: number };
  #now: Tally = newTally();
  #reported: { readonly since: Millis } | undefined;
  #lastAt: Millis;

  constructor(now: Millis) {
    this.#window = { since: now, count: 0 };
    this.#lastAt = now;
  }

  receiveRefusal({ close, tenant, address }: RefusedConnection, now: Millis): void {
    if (close === "goingAway") return; // The gateway stops, and the client is not to blame.
    this.#window.count += 1;
    this.#lastAt = now;
    this.#now.count += 1;
    add(this.#now.closes, close);
    if (tenant !== undefined) add(this.#now.tenants, tenant);
    if (address !== undefined) add(this.#now.addresses, address);
  }

  /** Call about once a second. Returns what to report. */
  receiveTick(now: Millis): ConnectionsRefused | undefined {
    const { since, count } = this.#window;
    if (this.#reported === undefined && count >= REFUSED_MIN) {
      this.#reported = { since };
      this.#window = { since: now, count: 0 };
      return this.#report("refused", since, now);
    }
    if (now - since < (this.#reported === undefined ? WINDOW_MS : CALM_MS)) return undefined;
    this.#window = { since: now, count: 0 };
    if (this.#reported !== undefined && count >= CALM_REFUSED_MAX) return undefined;
    const ended = this.#reported && this.#report("normal", this.#reported.since, this.#lastAt);
    this.#reported = undefined;
    this.#now = newTally();
    return ended;
  }

  #report(state: ConnectionsRefused["state"], since: Millis, through: Millis): ConnectionsRefused {
    const { count, closes, tenants, addresses } = this.#now;
    const [ofTenant, address] = [most(tenants, count), most(addresses, count)];
    return {
      state,
      close: most(closes, 0) ?? "",
      count,
      forMs: Math.max(0, Math.round(through - since)),
      ...(ofTenant === undefined ? {} : { ofTenant }),
      ...(address === undefined ? {} : { address }),
    };
  }
}

type Tally = {
  count: number;
  readonly closes: Map<string, number>;
  readonly tenants: Map<string, number>;
  readonly addresses: Map<string, number>;
};

function newTally(): Tally {
  return { count: 0, closes: new Map(), tenants: new Map(), addresses: new Map() };
}

/** The algorithm of Misra and Gries: rare values displace each other, and never a frequent one. */
function add(counts: Map<string, number>, key: string): void {
  const known = counts.get(key);
  if (known !== undefined || counts.size < COUNTED_MAX) return void counts.set(key, (known ?? 0) + 1);
  for (const [other, count] of counts) {
    if (count === 1) counts.delete(other);
    else counts.set(other, count - 1);
  }
}

/** The most frequent value, if it has at least half of `all`. `add` counts it too low by `all` / `COUNTED_MAX` at most. */
function most(counts: ReadonlyMap<string, number>, all: number): string | undefined {
  const [first] = [...counts].sort(([, a], [, b]) => b - a);
  return first !== undefined && first[1] + all / COUNTED_MAX >= all / 2 ? first[0] : undefined;
}
