/**
 * Maps an object's name to a path in stores with bounded names: a folder's parts have at most 255 bytes, an S3 key
 * 1,024. A room's key may be longer, because it spells each byte of a non-Latin script with three characters. Such a
 * name is packed: its decoded bytes are written in base64, in parts. The mark `~`, which no room's key contains, begins
 * it.
 */

import { parseRoomKey } from "../../shared/ids.ts";

const PART_CHARACTERS = 200;

export function pathOf(name: string): string {
  if (name.split("/").every((part) => part.length <= PART_CHARACTERS)) return name;
  const packed = Buffer.from(
    name.replace(/=([89a-f][0-9a-f])/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    "latin1",
  ).toString("base64url");
  return `~${packed.replace(new RegExp(`.{${PART_CHARACTERS}}(?=.)`, "g"), "$&/")}`;
}

/** `first`: the first part of a path. */
export function isOfRoom(first: string): boolean {
  return first.startsWith("~") || parseRoomKey(first) !== undefined;
}

export function nameAt(path: string): string {
  if (!path.startsWith("~")) return path;
  const unpacked = Buffer.from(path.slice(1).replaceAll("/", ""), "base64url").toString("latin1");
  return unpacked.replace(/[\u0080-\u00ff]/g, (byte) => `=${byte.charCodeAt(0).toString(16)}`);
}
