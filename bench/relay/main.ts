/** Runs one process of the relay: `node main.js gateway|sequencer|bare|cached|naive|tick`, settings from RELAY_… variables. */

import type { GatewayId } from "../../shared/ids.ts";
import { startBareServer } from "./bare-server.ts";
import { startCachedServer } from "./cached-server.ts";
import { startRelayGateway } from "./gateway.ts";
import { startPresenceServer } from "./presence-server.ts";
import { startRelaySequencer } from "./sequencer.ts";

const natsUrl = process.env["RELAY_NATS_URL"] ?? "nats://127.0.0.1:4222";
const environment = "relay";

const port = Number(process.env["RELAY_PORT"]);

if (process.argv[2] === "sequencer") await startRelaySequencer({ natsUrl, environment });
else if (process.argv[2] === "bare") await startBareServer(port);
else if (process.argv[2] === "cached") await startCachedServer(port);
else if (process.argv[2] === "naive" || process.argv[2] === "tick") await startPresenceServer(process.argv[2], port);
else await startRelayGateway({ natsUrl, environment, gateway: `g${process.env["RELAY_GATEWAY"]}` as GatewayId, port });

process.on("SIGTERM", () => process.exit(0));
process.stdout.write("relay ready\n");
