/** Counts what sessions do, in the metrics and for their tenants. A session without a valid token has no tenant. */

import type { TenantId } from "../../shared/ids.ts";
import type { ServerFrame } from "../../shared/wire/frames.ts";
import type { HostDeps } from "../host-deps.ts";
import type { RefusedConnection, RefusedConnections } from "../limits/refused-connections.ts";
import type { UsageMeter } from "../usage/usage-meter.ts";
import type { ClientSession } from "./client-session.ts";

export class SessionCounts {
  readonly #usage: UsageMeter;
  readonly #refused: RefusedConnections;
  readonly #deps: Pick<HostDeps, "clock" | "metrics">;

  constructor(usage: UsageMeter, refused: RefusedConnections, deps: Pick<HostDeps, "clock" | "metrics">) {
    this.#usage = usage;
    this.#refused = refused;
    this.#deps = deps;
  }

  /** The token of a new connection is valid. */
  countOpened({ bearer }: ClientSession): void {
    if (bearer !== undefined) this.#usage.receiveOpened(bearer.tenant, this.#deps.clock.now());
  }

  /** A connection is closed before its token is accepted. */
  countRefused(refused: RefusedConnection): void {
    if (refused.close !== "goingAway") this.#deps.metrics.refusedConnections.inc({ close: refused.close });
    this.#refused.receiveRefusal(refused, this.#deps.clock.now());
  }

  /** The gateway closes the connection. */
  countEnded({ bearer }: ClientSession, refused: RefusedConnection): void {
    if (bearer === undefined) this.countRefused(refused);
  }

  countClosed({ bearer }: ClientSession): void {
    if (bearer !== undefined) this.#usage.receiveClosed(bearer.tenant, this.#deps.clock.now());
  }

  countReceived({ identity }: ClientSession, bytes: number): void {
    if (identity !== undefined) this.#usage.add(identity.tenant, "receivedBytes", bytes);
  }

  countSent({ identity }: ClientSession, frame: ServerFrame): void {
    if (frame.type === "nack") this.#deps.metrics.nacks.inc({ reason: frame.reason });
    if (frame.type === "join-refused") this.#deps.metrics.joins.inc({ outcome: frame.reason });
    if (frame.type === "nack" || frame.type === "join-refused") this.countRefusal(identity?.tenant);
  }

  /** Presence above the rate. */
  countPassedOver({ identity }: ClientSession): void {
    this.#deps.metrics.presenceRefused.inc({ limit: "rate" });
    this.countRefusal(identity?.tenant);
  }

  countRefusal(tenant: TenantId | undefined): void {
    if (tenant !== undefined) this.#usage.add(tenant, "refusals", 1);
  }
}
