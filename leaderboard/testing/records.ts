/** Log records and scoring options for tests. */

import { encodeEditsRecord } from "../../shared/bus/record.ts";
import type { ClientId, Epoch, Seq } from "../../shared/ids.ts";
import { WINDOW_KINDS } from "../boards/windows.ts";
import type { ProjectionOptions } from "../counting/room-projection.ts";
import type { LoggedEdit } from "./reference-boards.ts";

/** Edits from `firstSeq` on, committed together. Each user is one client. */
export function recordOf(firstSeq: number, edits: readonly LoggedEdit[]): Uint8Array {
  const users = new Map(edits.map(({ user }) => [clientOf(user), user]));
  return encodeEditsRecord({
    id: `server.${firstSeq}`,
    time: edits[0]!.time,
    users,
    edits: {
      epoch: 1 as Epoch,
      firstSeq: firstSeq as Seq,
      edits: edits.map(({ user, bytes }, index) => ({
        client: clientOf(user),
        counter: firstSeq + index,
        parentSeq: (firstSeq + index - 1) as Seq,
        payload: new Uint8Array(bytes).fill(1),
      })),
    },
  });
}

/** The client id of a user: 16 characters from a hash of the name. */
function clientOf(user: string): ClientId {
  let hash = 0n;
  for (const char of user) hash = (hash * 1_000_003n + BigInt(char.codePointAt(0)!)) % (1n << 60n);
  return hash.toString(16).padStart(16, "c") as ClientId;
}

/** Small numbers, so that caps and ties are frequent. */
export const SCORING: ProjectionOptions = {
  boardRoles: ["everyone", "editors", "commenters"],
  boardWindows: WINDOW_KINDS,
  boardEditPointsSmall: 1,
  boardEditPointsMedium: 2,
  boardEditPointsLarge: 5,
  boardEditMediumBytesMin: 10,
  boardEditLargeBytesMin: 30,
  boardPointsPerMinuteMax: 7,
  boardKinds: [
    { name: "comment", points: 3, role: "commenters" },
    { name: "review", points: 4, role: "everyone" },
  ],
  boardKindPointsPerMinuteMax: 9,
  boardSessionPoints: 2,
  boardSessionMs: 300_000,
};
