/**
 * Measures how long edits wait for the log, one edit of each room at a time: it costs a comparison per edit, and a stall
 * of 5 s is still seen as 5 s.
 */

import type { ClientId, Millis, RoomKey } from "../../shared/ids.ts";
import type { Clock } from "../../shared/time/clock.ts";
import type { EditHops } from "../ports.ts";

/** Rooms whose measured edit was refused and never repeated are forgotten together. */
const ROOMS_MAX = 10_000;

type Measured = { readonly client: ClientId; readonly counter: number; readonly at: Millis };

/** `traced`: receives the same hops. */
export function saveMeter(observe: (seconds: number) => void, clock: Pick<Clock, "now">, traced: EditHops | undefined): EditHops {
  const open = new Map<RoomKey, Measured>();
  return {
    received: (room, edit) => {
      traced?.received(room, edit);
      if (open.has(room)) return;
      if (open.size >= ROOMS_MAX) open.clear();
      open.set(room, { client: edit.author.client, counter: edit.counter, at: clock.now() });
    },
    forwarded: (room, message) => traced?.forwarded(room, message),
    answered: (room, answer) => {
      traced?.answered(room, answer);
      if (answer.kind === "catch-up") return;
      const measured = open.get(room);
      if (measured?.client === answer.client && measured.counter === answer.counter) open.delete(room); // Refused, or a repeat.
    },
    committed: (room, batch) => {
      traced?.committed(room, batch);
      const measured = open.get(room);
      if (measured === undefined) return;
      const through = batch.runs.findLast(({ client }) => client === measured.client);
      if (through === undefined || through.counter + through.count <= measured.counter) return;
      open.delete(room);
      observe((clock.now() - measured.at) / 1_000);
    },
    delivering: (room, batch, deliver) => (traced === undefined ? deliver() : traced.delivering(room, batch, deliver)),
  };
}
