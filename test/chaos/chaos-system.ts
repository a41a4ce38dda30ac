/** The system that chaos is done to: three nats-servers with three copies of everything, several of every role, in three zones. */

import { opsStepDownSettings } from "../../cli/ops-settings.ts";
import { stepDown } from "../../cli/ops-step-down.ts";
import { leaderboardSettings } from "../../leaderboard/config.ts";
import { readSettings } from "../../shared/config.ts";
import { Balancer } from "../system/balancer.ts";
import { Cluster, type Process, type Role } from "../system/cluster.ts";
import { processFaults } from "./faults.ts";
import type { ChaosTarget } from "./target.ts";
import { Zones } from "./zones.ts";

const NATS_SERVERS = 3;
const REVIVED_MS_MAX = 240_000;
const NO_LIMIT = "1000000";
/** So that an edit counted twice is seen on a board, and nothing is worth points but what the judge knows of. */
const SCORING = { boardPointsPerMinuteMax: NO_LIMIT, boardKindPointsPerMinuteMax: NO_LIMIT, boardSessionPoints: "0" };

export class ChaosSystem {
  readonly cluster: Cluster;
  readonly zones: Zones;
  readonly balancer: Balancer;

  private constructor(cluster: Cluster, zones: Zones, balancer: Balancer) {
    this.cluster = cluster;
    this.zones = zones;
    this.balancer = balancer;
  }

  static async start(): Promise<ChaosSystem> {
    const zones = new Zones(NATS_SERVERS);
    const settings = {
      LOG_LEVEL: "info",
      EDIT_BURST: NO_LIMIT,
      EDITS_PER_SECOND: NO_LIMIT,
      RESEND_BURST: NO_LIMIT,
      RESENDS_PER_SECOND: NO_LIMIT,
      BOARD_POINTS_PER_MINUTE_MAX: SCORING.boardPointsPerMinuteMax,
      BOARD_KIND_POINTS_PER_MINUTE_MAX: SCORING.boardKindPointsPerMinuteMax,
      BOARD_SESSION_POINTS: SCORING.boardSessionPoints,
      BOARD_CHECKPOINT_MS_MAX: "20000",
    };
    const cluster = await Cluster.start({
      gateways: 2,
      roomServers: 3,
      placements: 2,
      documentServices: 2,
      leaderboards: 2,
      natsServers: NATS_SERVERS,
      natsRoute: zones.route,
      natsUrlOf: zones.natsUrlOf,
      settings,
    });
    return new ChaosSystem(cluster, zones, await Balancer.before(cluster.gateways));
  }

  get target(): ChaosTarget {
    const { cluster } = this;
    return {
      doors: [...cluster.gateways.map(({ url }) => url), this.balancer.url],
      environment: cluster.environment,
      natsUrl: async () => cluster.natsUrl,
      token: (room, user, more) => cluster.token(room, user, more),
      scoring: readSettings(leaderboardSettings, { flags: SCORING, env: {} }),
      faults: processFaults(this),
    };
  }

  processes(role: Role): readonly Process[] {
    switch (role) {
      case "room-server":
        return this.cluster.roomServers;
      case "gateway":
        return this.cluster.gateways.map(({ process }) => process);
      case "placement":
        return this.cluster.placements;
      case "document-service":
        return this.cluster.documentServices;
      case "leaderboard":
        return this.cluster.leaderboards;
    }
  }

  readonly stepDown = async (server: string): Promise<void> => {
    const flags = { natsUrl: this.cluster.natsUrl, environment: this.cluster.environment, server };
    await stepDown(readSettings(opsStepDownSettings, { flags, env: {} }), () => {});
  };

  /** A process that finds no NATS at its start ends, and is started again until it does. */
  readonly revive = async (process: Process): Promise<void> => {
    const deadline = performance.now() + REVIVED_MS_MAX;
    for (;;) {
      try {
        return await process.startAgain();
      } catch (error) {
        if (performance.now() > deadline) throw error;
      }
    }
  };

  async stop(): Promise<void> {
    await this.cluster.stop(); // First: whoever waits behind the balancer for a gateway is let go.
    await this.balancer.stop();
    await this.zones.stop();
  }
}
