import { expect, test } from "vitest";

import { readSettings, SettingError } from "../shared/settings/settings.ts";
import { documentServiceSettings, refuseUnwritable } from "./config.ts";
import { refuseUnfitStorage } from "./storage/storage-settings.ts";

test("[DCF1] a service whose checkpoints exceed the maximum message size of NATS does not start, and names the remedy", () => {
  const settings = (flags: Record<string, string>) => readSettings(documentServiceSettings, { flags, env: {} });
  refuseUnwritable(settings({}), 1_048_576);
  refuseUnwritable(settings({ checkpointClientsBytesMax: "2000000" }), undefined);
  expect(() => refuseUnwritable(settings({ checkpointClientsBytesMax: "1048576" }), 1_048_576)).toThrow(SettingError);
});

test("[DCF2] limits of storage that contradict those of the history are refused", () => {
  const settings = (flags: Record<string, string>) => readSettings(documentServiceSettings, { flags, env: {} });
  refuseUnfitStorage(settings({}));
  refuseUnfitStorage(settings({ roomBytesMax: "0" }));
  expect(() => refuseUnfitStorage(settings({ roomBytesMax: "500000000" }))).toThrow(/COROOM_ROOM_BYTES_MAX must be at least twice/);
  refuseUnfitStorage(settings({ opaqueLogMsMax: "1000", historyMsMax: "1001" }));
  for (const historyMsMax of ["0", "1000"])
    expect(() => refuseUnfitStorage(settings({ opaqueLogMsMax: "1000", historyMsMax }))).toThrow(/less than COROOM_HISTORY_MS_MAX/);
});
