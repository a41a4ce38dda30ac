/**
 * An administrator kicks a user, from the tab's room or with the whole connection. A gateway that answers has carried
 * out the kick. A kicked tab comes back by itself after a time, and must lose nothing.
 */

import type { AdminCommand } from "../../shared/bus/admin-messages.ts";
import type { TenantId, UserId } from "../../shared/ids.ts";
import { never } from "./process-faults.ts";
import type { Strike } from "./strike.ts";

export const kickUser: Strike = (cluster, { whom, how, aimed }) => {
  const { judge, kickedUsers } = cluster.world;
  const tab = cluster.tab(whom);
  const gateway = cluster.gateway({ whom: how });
  if (kickedUsers === undefined || !gateway.isUp || gateway.process.state !== "running") return never;
  const { connection, isConnected } = tab;
  const command: AdminCommand = {
    kind: "kick",
    tenant: "acme" as TenantId,
    user: tab.user as UserId,
    ...(aimed === true ? { room: tab.room } : {}),
  };
  kickedUsers.add(tab.user);
  let kicked = 0;
  const gateways = [...cluster.gatewayProcesses];
  const receive = (answer: { kicked: number; gateways: number }): void => {
    kicked = answer.kicked;
    if (aimed !== true && isConnected && answer.gateways === gateways.length && connection?.isOpenAtGateway === true)
      judge.fail(`all gateways answered the kick of ${tab.user}, and ${tab.name} is still connected`, tab.room);
  };
  gateway.process.run(() => void gateway.command(command).then(receive, () => {})); // Its NATS connection may be down.
  return () => kicked > 0;
};
