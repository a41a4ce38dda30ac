/** Coroom as it is deployed, one process a role, two gateways where not told otherwise. Only the limits on edit and connect rates are lifted. */

import { Cluster } from "../../test/system/cluster.ts";
import { GATEWAYS, type MeasuredSystem } from "./system.ts";

const NO_LIMIT = String(1e9);
const LIFTED = ["EDIT_BURST", "EDITS_PER_SECOND", "BYTES_BURST", "BYTES_PER_SECOND", "TENANT_EDITS_PER_SECOND_MAX", "CONNECTS_PER_SECOND_MAX", "GATEWAY_SNAPSHOT_BURST"];

/** `natsUrl` and `environment`: for whoever asks what operations were told of. */
export type Coroom = MeasuredSystem & { readonly natsUrl: string; readonly environment: string };

export async function startCoroom({ gateways = GATEWAYS, settings: more = {} }: { gateways?: number; settings?: Readonly<Record<string, string>> } = {}): Promise<Coroom> {
  const settings = { LOG_LEVEL: "warn", ...Object.fromEntries(LIFTED.map((limit) => [limit, NO_LIMIT])), ...more };
  const cluster = await Cluster.start({ gateways, roomServers: 1, settings });
  const roles = [...cluster.gateways.map(({ process }) => process), ...cluster.roomServers, cluster.placement, cluster.documentService];
  return {
    name: "coroom",
    natsUrl: cluster.nats.url,
    environment: cluster.environment,
    gateways: cluster.gateways.map(({ url }) => url),
    processes: [{ role: "nats-server", pid: cluster.nats.pid }, ...roles.map(({ role, pid }) => ({ role, pid }))],
    token: (user) => cluster.token("*", user),
    stop: () => cluster.stop(),
  };
}
