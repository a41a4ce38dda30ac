/** Settings of different roles that do nothing useful unless they fit each other. */

import { SettingError } from "../shared/config.ts";
import type { StartConfig } from "./settings.ts";

/**
 * Throws where a checkpoint would forget a writer whose edits a room's owner has still to know: the next owner, which
 * knows its writers from there, would order a repeat of them twice.
 */
export function refuseForgetful({
  roles,
  checkpointClientMsMax,
  dedupeMsMin,
}: Pick<StartConfig, "roles" | "checkpointClientMsMax" | "dedupeMsMin">): void {
  if (checkpointClientMsMax >= dedupeMsMin || !(roles.includes("room-server") || roles.includes("document-service"))) return;
  throw new SettingError(
    `checkpoints would forget a silent writer after ${checkpointClientMsMax} ms, whose edits are to be known for ${dedupeMsMin}: raise COROOM_CHECKPOINT_CLIENT_MS_MAX or lower COROOM_DEDUPE_MS_MIN, and give all room servers and document services the same of both`,
  );
}
