/**
 * Reports once per interval which users are in the rooms, a limited number of users per tick. A lost report costs the
 * users one interval's points.
 */

import type { GatewayId, UserId } from "../../shared/ids.ts";
import type { Clock } from "../../shared/time/clock.ts";
import { every } from "../../shared/time/every.ts";
import type { GatewayMetrics } from "../metrics.ts";
import type { Activities, BoardBus, ConnectionId } from "../ports.ts";
import { intervalAt, type PresenceActivity, presenceActivities, type RoomWriter } from "./board-sessions.ts";

/** Connected users, and the rooms in which each may write. */
type Connected = ReadonlyMap<
  ConnectionId,
  {
    readonly bearer: { readonly user: UserId } | undefined;
    readonly open: { readonly writing: readonly Omit<RoomWriter, "user">[] } | undefined;
  }
>;

type BoardSessionsPorts = { readonly activities: Activities; readonly boardBus: Pick<BoardBus, "leaderboards"> };
type BoardSessionsOptions = { readonly gateway: GatewayId; readonly boardSessionMs: number; readonly boardSessionPoints: number };

const TICK_MS = 1_000;
const REPORTS_PER_TICK = 500;

export class BoardSessionsHost {
  readonly #sessions: Connected;
  readonly #ports: BoardSessionsPorts;
  readonly #options: BoardSessionsOptions;
  readonly #deps: { readonly clock: Clock; readonly metrics: GatewayMetrics };
  #look: number;
  /** Reports that are not sent yet. A new interval discards those of the previous one. */
  #unreported: PresenceActivity[] = [];
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
    this.#stopTicking = every(this.#deps.clock, TICK_MS, () => this.#tick());
  }

  stop(): void {
    this.#stopTicking();
  }

  #tick(): void {
    const look = this.#lookNow();
    if (look !== this.#look) {
      this.#look = look;
      // Without a leaderboard the reports are not counted, and they would fill the stream.
      this.#unreported =
        this.#ports.boardBus.leaderboards() === 0
          ? []
          : presenceActivities(this.#writers(), this.#deps.clock.now(), { stretchMs: this.#options.boardSessionMs });
    }
    for (const presence of this.#unreported.splice(0, REPORTS_PER_TICK)) void this.#report(presence);
  }

  async #report({ room, activity }: PresenceActivity): Promise<void> {
    const first = activity.kind === "present" ? activity.users[0] : "";
    const outcome = await this.#ports.activities.storeActivity(room, activity, `${this.#options.gateway} ${this.#look} ${first}`);
    this.#deps.metrics.activities.inc({ by: "presence", outcome });
  }

  #lookNow(): number {
    return intervalAt(this.#deps.clock.wallNow(), this.#options.gateway, { stretchMs: this.#options.boardSessionMs });
  }

  *#writers(): Iterable<RoomWriter> {
    for (const session of this.#sessions.values()) {
      const user = session.bearer?.user;
      if (user !== undefined) for (const writing of session.open?.writing ?? []) yield { ...writing, user };
    }
  }
}
