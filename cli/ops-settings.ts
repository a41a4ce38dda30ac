/** What the commands read that go to NATS themselves: where the system is, as `coroom start` reads it, and what each is about. */

import { storeSettings, threadSettings } from "../document-service/config.ts";
import { type Settings, text, wholeNumber } from "../shared/config.ts";
import { ofOneCall } from "./of-one-call.ts";
import { startSettings } from "./settings.ts";
import { duration } from "./token-settings.ts";

const { natsCredentials, natsCa, natsCert, natsKey, dataDir, environment, logReplicas, logPartitions } = startSettings;

/** Those of `coroom start` that say where the system is. */
export const whereSettings = {
  natsUrl: { ...startSettings.natsUrl, meaning: "the NATS servers, comma-separated; empty: that of the local system" },
  natsCredentials,
  natsCa,
  natsCert,
  natsKey,
  dataDir,
  environment,
} as const satisfies Settings;

const whichRoom = ofOneCall({
  room: { parse: text, meaning: "the room, as its tenant calls it" },
  tenant: { parse: text, fallback: "default", meaning: "the tenant whose room it is" },
});
const serverId = { parse: text, meaning: "the room server, as coroom ops servers names it" } as const;
const placedRoom = { ...whichRoom, ...whereSettings, logReplicas } as const satisfies Settings;

export const opsWatchSettings = {
  ...ofOneCall({ last: { parse: wholeNumber, fallback: 20, meaning: "how many of the events that were kept are shown first" } }),
  ...whereSettings,
} as const satisfies Settings;
export const opsRoomSettings = { ...whichRoom, ...whereSettings } as const satisfies Settings;
export const opsServersSettings = whereSettings;
export const opsExplainSettings = placedRoom;
export const opsMoveSettings = { ...ofOneCall({ to: serverId }), ...placedRoom } as const satisfies Settings;
export const opsDrainSettings = { ...ofOneCall({ server: serverId }), ...whereSettings } as const satisfies Settings;
export const opsPinSettings = {
  ...ofOneCall({
    pool: { parse: text, fallback: "", meaning: "keep the room on servers of this pool (COROOM_SERVER_POOL)" },
    onHost: { parse: text, fallback: "", meaning: "keep the room on servers of this host (COROOM_SERVER_HOST)" },
  }),
  ...placedRoom,
} as const satisfies Settings;
export const opsPassSettings = {
  ...ofOneCall({ ttl: { parse: duration, fallback: 8 * 3_600, meaning: "how long it is good: 15m, 8h, 7d at most" } }),
  internalSecret: { ...startSettings.internalSecret, meaning: "the secret that the tiers share; empty: that of the local system" },
  dataDir,
} as const satisfies Settings;
export const opsLeftOutSettings = { ...whereSettings, logReplicas } as const satisfies Settings;
export const opsStepDownSettings = {
  ...ofOneCall({
    server: { parse: text, meaning: "the nats-server, by its server_name" },
    waitMsMax: { parse: wholeNumber, fallback: 60_000, meaning: "how long to wait for copies that are behind, and for other leaders" },
  }),
  ...whereSettings,
} as const satisfies Settings;

export const restoreSettings = {
  ...whereSettings,
  logPartitions,
  logReplicas,
  ...storeSettings,
  ...threadSettings,
} as const satisfies Settings;
