/** Looks at who is in the rooms when it is time, and tells of them some at a time. What cannot be told is a stretch without points, no more. */

import type { Clock } from "../../shared/clock.ts";
import type { GatewayId, UserId } from "../../shared/ids.ts";
import { lookAt, type Presence, presencesAt, type Writer } from "./board-sessions.ts";
import type { GatewayMetrics } from "../metrics.ts";
import type { Activities, BoardBus, ConnectionId } from "../ports.ts";

/** Who is connected, and where they may write. */
export type Connected = ReadonlyMap<
  ConnectionId,
  { readonly bearer: { readonly user: UserId } | undefined; readonly writing: readonly Omit<Writer, "user">[] }
>;

export type BoardSessionsPorts = { readonly activities: Activities; readonly boardBus: Pick<BoardBus, "leaderboards"> };
export type BoardSessionsOptions = { readonly gateway: GatewayId; readonly boardSessionMs: number; readonly boardSessionPoints: number };

const TICK_MS = 1_000;
const TOLD_PER_TICK = 500;

export class BoardSessionsHost {
  readonly #sessions: Connected;
  readonly #ports: BoardSessionsPorts;
  readonly #options: BoardSessionsOptions;
  readonly #deps: { readonly clock: Clock; readonly metrics: GatewayMetrics };
  #look: number;
  /** Still to be told; those of the look before are given up. */
  #untold: Presence[] = [];
  #stopTicking: () => void = () => {};

  constructor(
    sessions: Connected,
    ports: BoardSessionsPorts,
    options: BoardSessionsOptions,
    deps: { clock: Clock; metrics: GatewayMetrics },
  ) {
    this.#sessions = sessions;
    this.#ports = ports;
    this.#options = options;
    this.#deps = deps;
    this.#look = this.#lookNow();
  }

  start(): void {
    if (this.#options.boardSessionPoints === 0) return;
    this.#stopTicking = this.#deps.clock.after(TICK_MS, () => {
      this.#tick();
      this.start();
    });
  }

  stop(): void {
    this.#stopTicking();
  }

  #tick(): void {
    const look = this.#lookNow();
    if (look !== this.#look) {
      this.#look = look;
      // Without a leaderboard nobody counts, and nobody takes away what was told.
      this.#untold =
        this.#ports.boardBus.leaderboards() === 0
          ? []
          : presencesAt(this.#writers(), this.#deps.clock.now(), { stretchMs: this.#options.boardSessionMs });
    }
    for (const presence of this.#untold.splice(0, TOLD_PER_TICK)) void this.#tell(presence);
  }

  async #tell({ room, activity }: Presence): Promise<void> {
    const first = activity.kind === "present" ? activity.users[0] : "";
    const outcome = await this.#ports.activities.tell(room, activity, `${this.#options.gateway} ${this.#look} ${first}`);
    this.#deps.metrics.activities.inc({ by: "presence", outcome });
  }

  #lookNow(): number {
    return lookAt(this.#deps.clock.wallNow(), this.#options.gateway, { stretchMs: this.#options.boardSessionMs });
  }

  *#writers(): Iterable<Writer> {
    for (const session of this.#sessions.values()) {
      const user = session.bearer?.user;
      if (user !== undefined) for (const writing of session.writing) yield { ...writing, user };
    }
  }
}
