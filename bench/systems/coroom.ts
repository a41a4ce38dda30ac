/** Coroom as it is deployed, one process a role, two gateways where not told otherwise. Only the limits on edit and connect rates are lifted. */

import { Cluster } from "../../test/system/cluster.ts";
import { GATEWAYS, type MeasuredSystem } from "./system.ts";

const NO_RATE_LIMIT = String(1e9);

export async function startCoroom(gateways = GATEWAYS): Promise<MeasuredSystem> {
  const settings = { LOG_LEVEL: "warn", EDIT_BURST: NO_RATE_LIMIT, EDITS_PER_SECOND: NO_RATE_LIMIT, CONNECTS_PER_SECOND_MAX: NO_RATE_LIMIT };
  const cluster = await Cluster.start({ gateways, roomServers: 1, settings });
  const roles = [...cluster.gateways.map(({ process }) => process), ...cluster.roomServers, cluster.placement, cluster.documentService];
  return {
    name: "coroom",
    gateways: cluster.gateways.map(({ url }) => url),
    processes: [{ role: "nats-server", pid: cluster.nats.pid }, ...roles.map(({ role, pid }) => ({ role, pid }))],
    token: (user) => cluster.token("*", user),
    stop: () => cluster.stop(),
  };
}
