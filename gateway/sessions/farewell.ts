/** The last that a connection hears: when to come back if that matters, a text for logs, and the close code to go by. */

import { CLOSE, type CloseName } from "../../shared/wire/close-codes.ts";
import type { ServerFrame } from "../../shared/wire/frames.ts";

export type Farewell = { readonly kind: "send"; readonly frame: ServerFrame } | { readonly kind: "close"; readonly close: CloseName };

/** Trying again at once would make it worse. */
const FOR_LOAD: ReadonlySet<CloseName> = new Set(["overloaded", "rateLimited", "tenantFull", "banned"]);

export function farewell(close: CloseName, message: string, retryAfterMs: number): Farewell[] {
  const hint: ServerFrame[] = FOR_LOAD.has(close) ? [{ type: "retry-later", retryAfterMs }] : [];
  const frames: ServerFrame[] = [...hint, { type: "error", code: CLOSE[close].code, message }];
  return [...frames.map((frame) => ({ kind: "send" as const, frame })), { kind: "close", close }];
}
