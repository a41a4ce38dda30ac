/**
 * Seals an edit: HMAC-SHA-256, truncated to 128 bits. The seal covers the edit without its epoch, so that a later owner
 * accepts it too. It also covers the date of the seal, which precedes the HMAC. An old seal is refused: the owner may
 * have forgotten the writer, and would order the edit a second time.
 */

import { createHmac, timingSafeEqual } from "node:crypto";

import * as encoding from "lib0/encoding";

import type { RoomKey } from "../../shared/ids.ts";
import type { Clock } from "../../shared/time/clock.ts";
import type { TentativeEdit } from "../../shared/wire/frames.ts";
import type { Seal } from "../ports.ts";

const PURPOSE = "coroom tentative edit 2";
const DATE_BYTES = 8;
const MAC_BYTES = 16;
/** Maximum difference between the dates of two room servers. At most half of the dedupe window. */
const CLOCK_DIFFERENCE_MS_MAX = 60_000;

type SealOptions = { readonly dedupeMsMin: number };

export function hmacSeal(secret: string, { dedupeMsMin }: SealOptions, clock: Pick<Clock, "wallNow">): Seal {
  const differenceMsMax = Math.min(CLOCK_DIFFERENCE_MS_MAX, dedupeMsMin / 2);
  const sealAt = (room: RoomKey, edit: Content, date: bigint): Uint8Array => {
    const seal = Buffer.alloc(DATE_BYTES + MAC_BYTES);
    seal.writeBigUInt64BE(date);
    const hmac = createHmac("sha256", secret).update(seal.subarray(0, DATE_BYTES)).update(contentOf(room, edit));
    hmac.digest().copy(seal, DATE_BYTES, 0, MAC_BYTES);
    return new Uint8Array(seal);
  };
  return {
    sealOf: (room, edit) => sealAt(room, edit, BigInt(Math.floor(clock.wallNow()))),
    isGenuine: (room, edit) => {
      if (edit.mac.byteLength !== DATE_BYTES + MAC_BYTES) return false;
      const date = Buffer.from(edit.mac).readBigUInt64BE();
      if (!timingSafeEqual(edit.mac, sealAt(room, edit, date))) return false;
      const ageMs = clock.wallNow() - Number(date);
      return ageMs >= -differenceMsMax && ageMs <= dedupeMsMin - differenceMsMax;
    },
  };
}

type Content = Omit<TentativeEdit, "mac" | "epoch">;

/** Each text, and the payload, follows its length, so different contents never give the same bytes. */
function contentOf(room: RoomKey, edit: Content): Uint8Array {
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
