/** Records of a room's log for tests, from what was done in it. */

import { encodeEditsRecord } from "../../shared/bus/record.ts";
import type { ClientId, Epoch, Seq } from "../../shared/ids.ts";
import type { LoggedEdit } from "./reference-boards.ts";

/** Edits from `firstSeq` on, committed together. Each user is one client. */
export function recordOf(firstSeq: number, edits: readonly LoggedEdit[], epoch = 1): Uint8Array {
  const users = new Map(edits.map(({ user }) => [clientOf(user), user]));
  return encodeEditsRecord({
    id: `server.${firstSeq}`,
    time: edits[0]!.time,
    users,
    edits: {
      epoch: epoch as Epoch,
      firstSeq: firstSeq as Seq,
      edits: edits.map(({ user, bytes }, index) => ({
        client: clientOf(user),
        counter: firstSeq + index,
        parentSeq: (firstSeq + index - 1) as Seq,
        payload: new Uint8Array(bytes),
      })),
    },
  });
}

/** Stands for the user alone: 16 characters from a hash of the name. */
function clientOf(user: string): ClientId {
  let hash = 0n;
  for (const char of user) hash = (hash * 1_000_003n + BigInt(char.codePointAt(0)!)) % (1n << 60n);
  return hash.toString(16).padStart(16, "c") as ClientId;
}
