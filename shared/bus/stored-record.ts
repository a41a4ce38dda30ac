import type { RoomKey, UnixMillis } from "../ids.ts";

/** One record as the log holds it. `time` is when the log took it, on the log's clock. */
export type StoredRecord = { readonly room: RoomKey; readonly streamSeq: number; readonly time: UnixMillis; readonly bytes: Uint8Array };
