/**
 * The system under chaos: three nats-servers with three replicas of all data, and several processes per role in three
 * zones.
 */

import { readSettings } from "../../shared/settings/settings.ts";
import { opsStepDownSettings } from "../../cli/command-settings.ts";
import { stepDown } from "../../cli/ops-step-down.ts";
import { leaderboardSettings } from "../../leaderboard/config.ts";
import { Balancer } from "../system/balancer.ts";
import { SystemCluster, type Process, type ProcessRole } from "../system/cluster.ts";
import { processFaults } from "./faults.ts";
import { HostNames } from "./host-names.ts";
import type { ChaosTarget } from "./target.ts";
import { Zones } from "./zones.ts";

const NATS_SERVERS = 3;
const REVIVED_MS_MAX = 240_000;
const NO_LIMIT = "1000000";
/** Unlike nats-server, redis-server ends if a write passes the file size limit, unless it was started like this. */
const IGNORING_FILE_SIZE_SIGNAL = ["sh", "-c", `trap '' XFSZ; exec "$@"`, "sh"];
/** An edit that is counted twice must be visible on a board, and only activities that the judge knows earn points. */
const SCORING = { boardPointsPerMinuteMax: NO_LIMIT, boardKindPointsPerMinuteMax: NO_LIMIT, boardSessionPoints: "0" };

export class ChaosSystem {
  readonly cluster: SystemCluster;
  readonly zones: Zones;
  readonly balancer: Balancer;
  /** Undefined: this machine does not let a process have host names of its own. */
  readonly names: HostNames | undefined;

  private constructor(cluster: SystemCluster, zones: Zones, balancer: Balancer, names: HostNames | undefined) {
    this.cluster = cluster;
    this.zones = zones;
    this.balancer = balancer;
    this.names = names;
  }

  static async start({ syncAlways }: { readonly syncAlways: boolean }): Promise<ChaosSystem> {
    const zones = new Zones(NATS_SERVERS);
    const names = await HostNames.create(NATS_SERVERS);
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
    const cluster = await SystemCluster.start({
      gateways: 2,
      roomServers: 3,
      placements: 2,
      documentServices: 2,
      leaderboards: 2,
      natsServers: NATS_SERVERS,
      syncAlways,
      natsRoute: zones.route,
      natsUrlOf: async (process, servers) => {
        const url = await zones.natsUrlOf(process, servers);
        return names?.inUrl(url) ?? url;
      },
      ...(names === undefined ? {} : { launcherOf: names.launcherOf }),
      redisLauncher: IGNORING_FILE_SIZE_SIGNAL,
      settings,
    });
    return new ChaosSystem(cluster, zones, await Balancer.before(cluster.gateways), names);
  }

  get target(): ChaosTarget {
    const { cluster } = this;
    return {
      gatewayUrls: [...cluster.gateways.map(({ url }) => url), this.balancer.url],
      environment: cluster.environment,
      natsUrl: async () => cluster.natsUrl,
      token: (room, user, more) => cluster.token(room, user, more),
      scoring: readSettings(leaderboardSettings, { flags: SCORING, env: {} }),
      faults: processFaults(this),
    };
  }

  processes(role: ProcessRole): readonly Process[] {
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

  /** A process that finds no NATS at its start ends. Restarts it until it runs. */
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
    await this.cluster.stop(); // The balancer stops first, so that it releases clients that wait for a gateway.
    await this.balancer.stop();
    await this.zones.stop();
    this.names?.remove();
  }
}
