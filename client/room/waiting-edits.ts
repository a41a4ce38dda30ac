/** Edits that wait on this page: to be sent, or to be acknowledged. */

import type { ClientId, Seq } from "../../shared/ids.ts";
import type { Counter } from "../../shared/wire/frames.ts";

export type UnsentEdit = {
  readonly payload: Uint8Array;
  /** By so many calls of the application it was made: edits that wait are merged. */
  readonly made: number;
};

/** One that has its counter, and is sent again under it until it is acknowledged. */
export type SentEdit = UnsentEdit & {
  /** Under which it was sent, where that is known. */
  readonly client: ClientId | undefined;
  readonly counter: Counter;
  readonly parentSeq: Seq;
};
