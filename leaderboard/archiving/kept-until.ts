/** How long Redis keeps what is in the archive. */

import type { UnixMillis } from "../../shared/ids.ts";
import { KEPT_MS, type Window } from "../boards/windows.ts";

/** At least so long, so that whoever reads just now ends before it goes. */
const KEPT_MS_MIN = 60_000;

/** What was in the archive already goes soon: Redis may have come back from before the window closed, and readers ask it first. */
export function keptUntil(outcome: "written" | "there", { start, kind }: Window, wallNow: UnixMillis): UnixMillis {
  return Math.max(outcome === "there" ? 0 : start + KEPT_MS[kind], wallNow + KEPT_MS_MIN) as UnixMillis;
}
