/** Refuses a port that another process has before engines and roles are started that would have to be stopped again. */

import { createServer } from "node:net";

import { portTaken } from "../gateway/port-taken.ts";
import type { StartConfig } from "./settings.ts";

/** Throws a StartError. Whoever takes the port from now on is met when the gateway listens. */
export async function refuseTakenPort({ roles, host, port }: Pick<StartConfig, "roles" | "host" | "port">): Promise<void> {
  if (!roles.includes("gateway") || port === 0) return;
  await new Promise<void>((free, refuse) => {
    const server = createServer();
    server.once("error", () => refuse(portTaken({ host, port })));
    server.listen(port, host, () => server.close(() => free()));
  });
}
