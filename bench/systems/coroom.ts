/**
 * Coroom as it is deployed: one process for each role, by default two gateways. By default only the limits on edits,
 * connections and abuse are lifted, because few users open all connections, and with `small` the timeouts as well.
 */

import { SystemCluster } from "../../test/system/cluster.ts";
import { GATEWAYS, type MeasuredSystem } from "./system.ts";

const NO_LIMIT = String(1e9);
const LIFTED = [
  "EDIT_BURST",
  "EDITS_PER_SECOND",
  "BYTES_BURST",
  "BYTES_PER_SECOND",
  "TENANT_EDITS_PER_SECOND_MAX",
  "USER_EDITS_PER_SECOND_MAX",
  "CONNECTIONS_PER_USER_MAX",
  "ABUSE_POINTS_MAX",
  "CONNECTS_PER_SECOND_MAX",
  "GATEWAY_SNAPSHOT_BURST",
];
/** Settings that lift the limits on edits, connections and abuse, without their prefix. */
export const LIFTED_LIMITS: readonly (readonly [name: string, value: string])[] = LIFTED.map((limit) => [limit, NO_LIMIT]);

/**
 * For a small run on a busy machine: a late process or load shows as time, and not as rejected joins, closed readers,
 * departed participants or missing presence.
 */
export const PATIENT = {
  HELLO_MS_MAX: "120000",
  JOIN_MS_MAX: "120000",
  REFUSING_AFTER_MS: "120000",
  SLOW_MS_MAX: "60000",
  GATEWAY_SILENCE_MS_MAX: "60000",
  PRESENCE_BURST: NO_LIMIT,
  PRESENCE_PER_SECOND_MAX: NO_LIMIT,
  SHED_DELAY_MS_MIN: NO_LIMIT,
  SHED_NATS_LAG_MS_MIN: NO_LIMIT,
  SHARE_DELAY_MS_MIN: NO_LIMIT,
} as const;

/**
 * `natsUrl` and `environment`: for questions to its processes, and for reading their events. `operatorSecret`: for
 * requests as an operator.
 */
export type Coroom = MeasuredSystem & {
  readonly natsUrl: string;
  readonly environment: string;
  readonly operatorSecret: string;
  /** By default of the tenant "default". */
  token(user: string, tenant?: string): Promise<string>;
  /** The output of the document service. */
  documentServiceLog(): string;
};

type CoroomStart = {
  gateways?: number;
  leaderboards?: number;
  natsMonitorPort?: number;
  small?: boolean;
  hasDefaultLimits?: boolean;
  settings?: Readonly<Record<string, string>>;
};

/** Returns `running`, which its owner stops, or starts another one. */
export async function coroomFor(running: Coroom | undefined, start: CoroomStart): Promise<Coroom> {
  return running === undefined ? startCoroom(start) : { ...running, stop: () => Promise.resolve() };
}

/**
 * `leaderboards`: none by default, and none has a redis-server. `natsMonitorPort`: of nats-server; none by default.
 * `hasDefaultLimits`: no limit is lifted.
 */
export async function startCoroom({
  gateways = GATEWAYS,
  leaderboards,
  natsMonitorPort,
  small = false,
  hasDefaultLimits = false,
  settings: more = {},
}: CoroomStart = {}): Promise<Coroom> {
  const settings = {
    LOG_LEVEL: "warn",
    ...(hasDefaultLimits ? {} : Object.fromEntries(LIFTED_LIMITS)),
    ...(small ? PATIENT : {}),
    ...more,
  };
  const cluster = await SystemCluster.start({
    gateways,
    roomServers: 1,
    settings,
    ...(leaderboards === undefined ? {} : { leaderboards }),
    ...(natsMonitorPort === undefined ? {} : { natsMonitorPort }),
  });
  const roles = [
    ...cluster.gateways.map(({ process }) => process),
    ...cluster.roomServers,
    cluster.placement,
    cluster.documentService,
    ...cluster.leaderboards,
  ];
  const redis = cluster.redis === undefined ? [] : [{ role: "redis-server", pid: cluster.redis.pid }];
  return {
    name: "coroom",
    natsUrl: cluster.natsUrl,
    environment: cluster.environment,
    operatorSecret: cluster.operatorSecret,
    documentServiceLog: () => cluster.documentService.printed(),
    gateways: cluster.gateways.map(({ url }) => url),
    processes: [{ role: "nats-server", pid: cluster.nats.pid }, ...redis, ...roles.map(({ role, pid }) => ({ role, pid }))],
    token: (user: string, tenant?: string) => cluster.token("*", user, tenant === undefined ? {} : { tenant }),
    stop: () => cluster.stop(),
  };
}
