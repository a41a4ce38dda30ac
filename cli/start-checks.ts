/**
 * Checks the settings of all roles before any role starts. A failure later in the start would have to stop started
 * roles again.
 */

import { createServer } from "node:net";

import { internalTls } from "../shared/io/internal-tls.ts";
import { natsAddress } from "../shared/io/nats-address.ts";
import { SettingError } from "../shared/settings/settings.ts";
import { refuseUnsafe as refuseYWebsocket } from "../bridges/config.ts";
import { refuseUnfit as refuseDocumentService, documentsAddress } from "../document-service/config.ts";
import { refuseUnsafeGateway as refuseGateway, portTaken } from "../gateway/config.ts";
import { refuseUnfit as refuseLeaderboard, boardsAddress } from "../leaderboard/config.ts";
import { refuseUnfit as refuseProbe } from "../probe/config.ts";
import { refuseUnfit as refuseRoomServer } from "../room-server/config.ts";
import { DEFAULT_NATS_URL } from "./local-addresses.ts";
import type { Role, StartConfig } from "./settings.ts";

/** The gateway of the same process. Its port is not known yet. */
const OWN_GATEWAY = "ws://127.0.0.1";

/**
 * Throws one SettingError with all problems. It contacts no server; problems of NATS appear at the connect. `config`
 * includes the secrets.
 */
export async function refuseUnfit(config: StartConfig): Promise<void> {
  const refuseFiles = config.roles.includes("gateway") ? (await import("../gateway/io/start-checks.ts")).refuseUnreadableFiles : () => {};
  const refuseTokenFile = config.roles.includes("probe") ? (await import("../probe/io/tokens.ts")).refuseUnreadable : () => {};
  const refuseBridges = (): void => {
    const given = config.yGatewayUrl === "" ? [] : [config.yGatewayUrl];
    const [yGatewayUrl = ""] = gatewaysFor(config, given, "COROOM_Y_GATEWAY_URL");
    refuseYWebsocket({ ...config, yGatewayUrl });
  };
  const checks: Readonly<Record<Role, () => void>> = {
    "engines": () => {},
    "placement": () => {},
    "room-server": () => refuseRoomServer(config),
    "document-service": () => {
      refuseDocumentService(config);
      internalTls(config, documentsAddress(config));
    },
    "leaderboard": () => {
      refuseLeaderboard(config);
      internalTls(config, boardsAddress(config));
    },
    "gateway": () => {
      refuseGateway(config);
      refuseFiles(config);
    },
    "y-websocket": refuseBridges,
    "hocuspocus": refuseBridges,
    "probe": () => {
      refuseProbe({ ...config, probeGatewayUrls: gatewaysFor(config, config.probeGatewayUrls, "COROOM_PROBE_GATEWAY_URLS") });
      refuseTokenFile(config);
    },
  };
  const problems = [
    () => refuseShortWriterMemory(config),
    () => refuseLateRepeats(config),
    () => void natsAddress({ ...config, natsUrl: config.natsUrl || DEFAULT_NATS_URL }),
    ...new Set(config.roles.map((role) => checks[role])),
  ].flatMap(problemOf);
  if (problems.length > 0) throw new SettingError([...new Set(problems)].join("\n")); // Roles may share a setting.
}

/** The gateways of a role that is their client. The port of this process's own gateway may not be known yet. */
function gatewaysFor({ roles, tlsCertFile }: StartConfig, given: readonly string[], setting: string): readonly string[] {
  if (given.length > 0 || !roles.includes("gateway")) return given;
  if (tlsCertFile !== "")
    throw new SettingError(`${setting} is not set. Over TLS it must be a wss:// address with the host name in the gateway's certificate`);
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

/**
 * Throws when a checkpoint would forget a writer that the owner must still recognise. The next owner learns its writers
 * from the checkpoint, so it would order a repeated edit twice.
 */
export function refuseShortWriterMemory({
  roles,
  checkpointClientMsMax,
  dedupeMsMin,
}: Pick<StartConfig, "roles" | "checkpointClientMsMax" | "dedupeMsMin">): void {
  if (checkpointClientMsMax >= dedupeMsMin || !(roles.includes("room-server") || roles.includes("document-service"))) return;
  throw new SettingError(
    `checkpoints would forget an inactive writer after ${checkpointClientMsMax} ms, but its edits must be recognised for ${dedupeMsMin} ms. Raise COROOM_CHECKPOINT_CLIENT_MS_MAX or lower COROOM_DEDUPE_MS_MIN, and use the same values for all room servers and document services`,
  );
}

/** Allowance for clock rates, ticks, and messages on their way. */
const REPEAT_MARGIN_MS = 10_000;

/**
 * Throws when a gateway could send an edit again after its owner has forgotten the writer, which orders the edit twice. The
 * owner may have seen the writer last when NATS was lost. Clients then stay at the gateway, and after they left their edits do.
 */
export function refuseLateRepeats({
  roles,
  forwardedKeptMs,
  backboneLossMsMax,
  dedupeMsMin,
}: Pick<StartConfig, "roles" | "forwardedKeptMs" | "backboneLossMsMax" | "dedupeMsMin">): void {
  const repeatedMsMax = forwardedKeptMs + backboneLossMsMax + REPEAT_MARGIN_MS;
  if (repeatedMsMax < dedupeMsMin || !(roles.includes("room-server") || roles.includes("gateway"))) return;
  throw new SettingError(
    `gateways would send edits again for ${repeatedMsMax} ms, but their writers are recognised for ${dedupeMsMin} ms. Lower COROOM_FORWARDED_KEPT_MS or COROOM_BACKBONE_LOSS_MS_MAX, or raise COROOM_DEDUPE_MS_MIN, and use the same values for all gateways and room servers`,
  );
}

/**
 * Throws a StartError when the gateway's port is in use, before engines and roles start. If the port is taken later,
 * the gateway's own listen fails.
 */
export async function refuseTakenPort({ roles, host, port }: Pick<StartConfig, "roles" | "host" | "port">): Promise<void> {
  if (!roles.includes("gateway") || port === 0) return;
  await new Promise<void>((free, refuse) => {
    const server = createServer();
    server.once("error", () => refuse(portTaken({ host, port })));
    server.listen(port, host, () => server.close(() => free()));
  });
}
