/** For tests: a record that an owner appended, read from its bytes. */

import { assert } from "../assert.ts";
import { decodeRecord, type OwnersRecord } from "../bus/record.ts";

export function ownersRecordOf(bytes: Uint8Array): OwnersRecord {
  const record = decodeRecord(bytes);
  assert(record !== undefined && record.kind !== "deleted", "the bytes are an owner's record");
  return record;
}
