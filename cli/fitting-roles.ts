/** Whether each role of a process can be started as it is set, before anything of it is: what fails late has to be stopped again. */

import { refuseUnfit as refuseDocumentService } from "../document-service/config.ts";
import { refuseUnsafe as refuseGateway } from "../gateway/config.ts";
import { refuseUnfit as refuseLeaderboard } from "../leaderboard/config.ts";
import { refuseUnfit as refuseProbe } from "../probe/config.ts";
import { refuseUnfit as refuseRoomServer } from "../room-server/config.ts";
import { SettingError } from "../shared/config.ts";
import { natsAddress } from "../shared/io/nats-address.ts";
import { refuseUnsafe as refuseYWebsocket } from "../y-websocket/config.ts";
import { refuseForgetful } from "./fitting-settings.ts";
import { DEFAULT_NATS_URL } from "./local-nats-url.ts";
import type { Role, StartConfig } from "./settings.ts";

/** The gateway of the same process, whatever its port. */
const OWN_GATEWAY = "ws://127.0.0.1";

/** Throws a SettingError with all that is wrong. Asks nobody: what NATS does not take is found when it is asked. `config`: with its secrets. */
export async function refuseUnfit(config: StartConfig): Promise<void> {
  const refuseFiles = config.roles.includes("gateway") ? (await import("../gateway/io/named-files.ts")).refuseUnreadable : () => {};
  const refuseTokenFile = config.roles.includes("probe") ? (await import("../probe/io/tokens.ts")).refuseUnreadable : () => {};
  const checks: Readonly<Record<Role, () => void>> = {
    "engines": () => {},
    "placement": () => {},
    "room-server": () => refuseRoomServer(config),
    "document-service": () => refuseDocumentService(config),
    "leaderboard": () => refuseLeaderboard(config),
    "gateway": () => {
      refuseGateway(config);
      refuseFiles(config);
    },
    "y-websocket": () => refuseYWebsocket({ ...config, yGatewayUrl: gatewayFor(config) }),
    "probe": () => {
      refuseProbe({ ...config, probeGatewayUrls: gatewaysFor(config) });
      refuseTokenFile(config);
    },
  };
  const problems = [
    () => refuseForgetful(config),
    () => void natsAddress({ ...config, natsUrl: config.natsUrl || DEFAULT_NATS_URL }),
    ...config.roles.map((role) => checks[role]),
  ].flatMap(problemOf);
  if (problems.length > 0) throw new SettingError(problems.join("\n"));
}

/** Where clients of y-websocket are taken to. Of this process's own gateway it may not be known yet at which port. */
function gatewayFor({ roles, yGatewayUrl, tlsCertFile }: StartConfig): string {
  if (yGatewayUrl !== "" || !roles.includes("gateway")) return yGatewayUrl;
  if (tlsCertFile !== "")
    throw new SettingError(
      "COROOM_Y_GATEWAY_URL is not set: over TLS a gateway has to be reached by the name in its certificate (wss://…)",
    );
  return OWN_GATEWAY;
}

/** Where a probe enters rooms, in the same way. */
function gatewaysFor({ roles, probeGatewayUrls, tlsCertFile }: StartConfig): readonly string[] {
  if (probeGatewayUrls.length > 0 || !roles.includes("gateway")) return probeGatewayUrls;
  if (tlsCertFile !== "")
    throw new SettingError(
      "COROOM_PROBE_GATEWAY_URLS is not set: over TLS a gateway has to be reached by the name in its certificate (wss://…)",
    );
  return [OWN_GATEWAY];
}

function problemOf(check: () => void): readonly string[] {
  try {
    check();
    return [];
  } catch (error) {
    if (error instanceof SettingError) return [error.message];
    throw error;
  }
}
