/** What tests of rooms kept on a device have in common: a server whose documents are Yjs's, and what it heard. */

import * as Y from "yjs";

import type { RoomId } from "../../shared/ids.ts";
import type { ClientFrame } from "../../shared/wire/frames.ts";
import { FakeClock } from "./fake-clock.ts";
import { type Faults, ModelServer } from "./model-server.ts";

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const NOTES = "notes" as RoomId;

export function serverOn(faults: Partial<Faults> = {}): ModelServer {
  const server = new ModelServer(new FakeClock(), { faults: { delayMsMax: 5, ...faults } });
  server.snapshotOf = (edits) => Y.mergeUpdates(edits.map(({ payload }) => payload));
  return server;
}

export function heard<Type extends ClientFrame["type"]>(server: ModelServer, type: Type): (ClientFrame & { type: Type })[] {
  return server.heard.filter((frame): frame is ClientFrame & { type: Type } => frame.type === type);
}

/** What the log holds, each author's text apart. */
export function lengthsInLog(server: ModelServer): number {
  return server.room(NOTES).head;
}
