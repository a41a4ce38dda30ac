/** Checks before a run that its rooms can be deleted, and deletes them afterwards. */

import { SettingError } from "../../shared/settings/settings.ts";
import { DocumentError, DocumentsClient } from "../documents-client.ts";
import type { BenchAccess } from "./access.ts";
import { ROOM_PREFIX } from "./plan.ts";

/** Deletions at the same time. */
const PARALLEL = 4;
const NO_ROOM = "no-room";
const REFUSED = [401, 403];

type DeletedRooms = { readonly deleted: number; readonly left: readonly string[]; readonly why: string };

/**
 * Asks for the deletion of a room that never existed. Throws SettingError if no gateway answers, or if the tokens do not
 * permit what the run needs.
 */
export async function refuseUndeletable(access: BenchAccess, tag: string): Promise<void> {
  try {
    await deleteRoom(access, `${ROOM_PREFIX}${tag}-check`, 0);
  } catch (error) {
    if (!(error instanceof DocumentError)) throw error;
    throw new SettingError(
      `the gateway at ${access.url} would refuse to delete the rooms of this run: ${error.message}${REFUSED.includes(error.status) ? `. ${access.remedy}` : ""}`,
      { cause: error },
    );
  }
}

/** Each room with the user of another person, because a gateway limits the deletions of one user. */
export async function deleteRooms(access: BenchAccess, rooms: readonly string[]): Promise<DeletedRooms> {
  const left: string[] = [];
  let [next, why] = [0, ""];
  const deleteNext = async (): Promise<void> => {
    while (next < rooms.length) {
      const index = next++;
      try {
        await deleteRoom(access, rooms[index]!, index);
      } catch (error) {
        if (!(error instanceof DocumentError) && !(error instanceof SettingError)) throw error;
        left.push(rooms[index]!);
        why ||= error.message;
      }
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, deleteNext));
  return { deleted: rooms.length - left.length, left, why };
}

async function deleteRoom(access: BenchAccess, room: string, person: number): Promise<void> {
  const client = new DocumentsClient(access.url, () => access.adminTokenOf(person));
  try {
    await client.ask(`/${encodeURIComponent(room)}`, { method: "DELETE" });
  } catch (error) {
    if (!(error instanceof DocumentError) || error.code !== NO_ROOM) throw error;
  }
}
