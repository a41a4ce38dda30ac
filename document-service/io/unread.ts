/** Answers for a document or content that could not be read. */

import { assertNever } from "../../shared/assert.ts";
import { type InternalResponse, refusal } from "../../shared/io/internal-http.ts";
import type { Unread } from "../ports.ts";

/** For a body that `InternalQuestion.body` refuses. */
export const TOO_LARGE = refusal(
  413,
  "too-large",
  "the body is longer than the document service takes: send it in parts, or raise COROOM_DOCUMENT_BODY_BYTES_MAX",
);

export function isRead<Value>(value: Value | Unread): value is Value {
  return value !== "busy" && value !== "overran" && value !== "unreadable";
}

export function unread(why: Unread): InternalResponse {
  switch (why) {
    case "busy":
      return refusal(503, "busy", "too many documents are being read, or a thread ended over this one: ask again");
    case "overran":
      return refusal(
        503,
        "too-long",
        "it could not be read in time: fetch the snapshot and read it yourself, or raise COROOM_MERGE_MS_MAX",
      );
    case "unreadable":
      return refusal(
        422,
        "unreadable",
        "what is in it cannot be read or written so, it may be nested too deeply: name its shared types by their kinds, or fetch the snapshot and read it yourself",
      );
    default:
      return assertNever(why);
  }
}
