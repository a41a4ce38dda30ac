/** A pass for the operations console: made of the secret that the tiers share, so that no browser ever holds the secret itself. */

import { SettingError, type Values } from "../shared/config.ts";
import type { UnixMillis } from "../shared/ids.ts";
import { makeOperatorPass } from "../shared/io/operator-pass.ts";
import type { opsPassSettings } from "./ops-settings.ts";
import { localSecrets } from "./secrets.ts";

/** So long may somebody who saw it do what an operator may. */
const SECONDS_MAX = 7 * 86_400;

/** Of the secret that was given, or the local system's. */
export function operatorPass({ dataDir, internalSecret, ttl }: Values<typeof opsPassSettings>): string {
  if (ttl > SECONDS_MAX) throw new SettingError("a pass is good for at most 7d: whoever sees it is an operator for as long");
  return makeOperatorPass(
    internalSecret === "" ? localSecrets(dataDir).internalSecret : internalSecret,
    (Date.now() + ttl * 1_000) as UnixMillis,
  );
}
