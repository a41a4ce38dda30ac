/** What a person at a terminal is told of what ended a command: one clear message, and a stack only of what nobody foresaw. */

import { EngineError } from "../engines/engine-error.ts";
import { SettingError } from "../shared/config.ts";
import { StartError } from "../shared/start-error.ts";

export function toldPlainly(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const isForeseen = error instanceof SettingError || error instanceof StartError || error instanceof EngineError;
  return isForeseen ? error.message : (error.stack ?? error.message);
}
