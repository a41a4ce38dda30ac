/** What is answered where a document, or content for one, could not be read for now. */

import { type InternalAnswer, refusal } from "../../shared/io/internal-http.ts";
import type { Unread } from "../ports.ts";

export function isRead<Value>(value: Value | Unread): value is Value {
  return value !== "busy" && value !== "overran";
}

export function unread(why: Unread): InternalAnswer {
  return why === "busy" ? refusal(503, "busy", "too many documents are being read: ask again") : refusal(503, "too-long", "it could not be read in time: fetch the snapshot and read it yourself, or raise COROOM_MERGE_MS_MAX");
}
