/**
 * Checks webhooks against the judge's log. No event is queued before the log has what it announces. At the end each
 * endpoint must have received an event at the last edit of each room or later, and the deletion of each deleted room.
 */

import type { WebhookEvent } from "../../shared/bus/webhook-events.ts";
import { type RoomId, roomKey, type RoomKey, type TenantId } from "../../shared/ids.ts";
import { epochOf, headOf } from "../../shared/bus/record.ts";
import type { Judge, RoomTruth } from "./judge.ts";

export class WebhookJudge {
  readonly #judge: Judge;
  readonly #queued = new Map<string, WebhookEvent>();
  readonly #delivered = new Map<string, Set<string>>();

  constructor(judge: Judge) {
    this.#judge = judge;
  }

  receiveQueued(id: string, event: WebhookEvent): void {
    this.#queued.set(id, event);
    const key = keyOf(event);
    const room = this.#judge.room(key);
    if (event.type === "room.deleted") {
      if (!room.isDeleted) this.#judge.fail("a webhook announces the deletion of a room that is not deleted", key);
    } else if ("seq" in event && ((event.seq > room.head && !room.lost.hasAny) || !room.beginnings.has(event.epoch)))
      this.#judge.fail(`a webhook announces seq ${event.seq} in epoch ${event.epoch}, and the log is at seq ${room.head}`, key);
  }

  receiveDelivered(endpoint: string, id: string): void {
    const delivered = this.#delivered.get(endpoint) ?? new Set();
    this.#delivered.set(endpoint, delivered.add(id));
  }

  /** Describes an edit or a deletion that is not announced to one of these endpoints. */
  unsettled(endpoints: readonly string[]): string | undefined {
    for (const [key, room] of this.#judge.rooms) {
      const events = [...this.#queued].filter(([, event]) => keyOf(event) === key);
      const wrong = this.#notQueued(room, events);
      if (wrong !== undefined) return `of room ${key}, ${wrong}`;
      for (const endpoint of endpoints) {
        const missing = events.find(([id]) => this.#delivered.get(endpoint)?.has(id) !== true);
        if (missing !== undefined) return `the endpoint ${endpoint} has not received ${missing[0]}`;
      }
    }
    return undefined;
  }

  /** Describes a change that no event announces. After the log lost records, the number of announced edits is unknown. */
  #notQueued(room: RoomTruth, events: readonly (readonly [string, WebhookEvent])[]): string | undefined {
    if (room.isDeleted) return events.some(([, { type }]) => type === "room.deleted") ? undefined : "no webhook announces its deletion";
    const last = room.records.findLast(({ record }) => record.kind === "edits")?.record;
    if (last === undefined) return undefined;
    const changes = events.flatMap(([, event]) => (event.type === "document.changed" ? [event] : []));
    const [epoch, head] = [epochOf(last), headOf(last)];
    if (!changes.some((change) => change.epoch > epoch || (change.epoch === epoch && change.seq >= head)))
      return `no webhook announces seq ${head} of epoch ${epoch}`;
    const announced = changes.reduce((sum, { edits }) => sum + edits, 0);
    return announced >= room.head || room.lost.hasAny ? undefined : `webhooks announce ${announced} of its ${room.head} edits`;
  }
}

function keyOf({ tenant, room }: WebhookEvent): RoomKey {
  return roomKey(tenant as TenantId, room as RoomId);
}
