/**
 * Where an object lies in a store that bounds its names: a folder's parts have 255 bytes at the most, an S3 key 1,024.
 * A room's key spells each byte of a foreign script with three characters, and may be longer. Such a name is packed:
 * those bytes as they are, all of it in base64, in parts; `~` says so, which no room's key holds.
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

/** `first`: of a path's parts. */
export function isOfRoom(first: string): boolean {
  return first.startsWith("~") || parseRoomKey(first) !== undefined;
}

export function nameAt(path: string): string {
  if (!path.startsWith("~")) return path;
  const unpacked = Buffer.from(path.slice(1).replaceAll("/", ""), "base64url").toString("latin1");
  return unpacked.replace(/[\u0080-\u00ff]/g, (byte) => `=${byte.charCodeAt(0).toString(16)}`);
}
