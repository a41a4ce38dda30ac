/** Settings for what rooms and tenants may store. */

import { SettingError, type Settings, type Values, wholeNumber } from "../../shared/settings/settings.ts";
import { NO_TENANT_LIMIT, tenantBytesMax } from "../../shared/settings/tenant-bytes.ts";

export const storageSettings = {
  opaqueLogMsMax: {
    parse: wholeNumber,
    fallback: 0,
    meaning:
      "Milliseconds after which edits move to the history in rooms whose edits are no Yjs updates. A client that lacks them cannot join any more: the application supplies the state. 0: they stay in the log, up to COROOM_ROOM_BYTES_MAX.",
  },
  roomBytesMax: {
    parse: wholeNumber,
    fallback: 1024 ** 3,
    meaning:
      "Maximum bytes that one room stores: its snapshot, its history and its log. Beyond it the room can only be read. At least twice COROOM_HISTORY_BYTES_MAX. 0: no limit.",
  },
  tenantBytesMax: {
    parse: tenantBytesMax,
    fallback: NO_TENANT_LIMIT,
    shownAs: "0",
    meaning:
      "Maximum bytes that all rooms of a tenant store together. Beyond it they can only be read. One number for all tenants, and tenant=number for single ones. 0: no limit.",
    basic: true,
  },
} as const satisfies Settings;

type HistoryLimits = { readonly historyBytesMax: number; readonly historyMsMax: number };

export function refuseUnfitStorage(config: Values<typeof storageSettings> & HistoryLimits): void {
  if (config.roomBytesMax > 0 && config.roomBytesMax < 2 * config.historyBytesMax) {
    throw new SettingError(
      "COROOM_ROOM_BYTES_MAX must be at least twice COROOM_HISTORY_BYTES_MAX: otherwise a long history alone could close a room for edits",
    );
  }
  if (config.opaqueLogMsMax > 0 && config.opaqueLogMsMax >= config.historyMsMax) {
    throw new SettingError(
      "COROOM_OPAQUE_LOG_MS_MAX must be less than COROOM_HISTORY_MS_MAX: otherwise the history would drop edits as soon as they leave the log",
    );
  }
}
