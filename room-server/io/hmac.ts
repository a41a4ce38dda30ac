/** HMAC-SHA-256, cut to 128 bits, over an edit without its epoch: a later owner accepts it too. */

import { createHmac, timingSafeEqual } from "node:crypto";

import * as encoding from "lib0/encoding";

import type { RoomKey } from "../../shared/ids.ts";
import type { TentativeEdit } from "../../shared/wire/frames.ts";
import type { Seal } from "../ports.ts";

const PURPOSE = "coroom tentative edit 1";
const MAC_BYTES = 16;

export function hmacSeal(secret: string): Seal {
  const sealOf: Seal["sealOf"] = (room, edit) =>
    new Uint8Array(createHmac("sha256", secret).update(contentOf(room, edit)).digest().subarray(0, MAC_BYTES));
  return {
    sealOf,
    isGenuine: (room, edit) => edit.mac.byteLength === MAC_BYTES && timingSafeEqual(edit.mac, sealOf(room, edit)),
  };
}

/** Every text and the payload follow their length, so no two contents give the same bytes. */
function contentOf(room: RoomKey, edit: Omit<TentativeEdit, "mac" | "epoch">): Uint8Array {
  return encoding.encode((out) => {
    encoding.writeVarString(out, PURPOSE);
    encoding.writeVarString(out, room);
    encoding.writeVarString(out, edit.user);
    encoding.writeVarString(out, edit.client);
    encoding.writeVarUint(out, edit.counter);
    encoding.writeVarUint(out, edit.ackedThrough);
    encoding.writeVarUint(out, edit.parentSeq);
    encoding.writeVarUint8Array(out, edit.payload);
  });
}
