/**
 * The fields of one member on their way to the room's owner. Decides which fields are sent next, and when, and which are
 * remembered. Every gateway and every member of the room pays for the bytes of a state, so a member with large states
 * sends fewer of them: the newest values, later.
 */

import type { Millis } from "../../shared/ids.ts";
import { type PresenceField, VIEWPORT } from "../../shared/wire/presence.ts";

export type PresenceOutboxOptions = {
  /** Maximum for all fields of one member, names and values together. */
  readonly memberBytesMax: number;
  readonly memberFieldsMax: number;
  /** Minimum interval between two sends of one room. */
  readonly flushMs: number;
  /** Time after which a field that the room does not show is sent again. */
  readonly repeatMs: number;
};

/** `sentAt`: when any value of the field was last sent; LONG_AGO: never. */
type SentField = { value: Uint8Array; fresh: boolean; stage: "waiting" | "sent" | "shown"; sentAt: Millis; repeatMs: number };
type SentFields = Map<string, SentField>;
export type FieldSender = {
  readonly fields: SentFields;
  readonly bytes: number;
  readonly count: number;
  nextAt: Millis;
  nextViewportAt: Millis;
  /** When the bytes sent so far are paid at the member's rate. */
  paidAt: Millis;
};

export const LONG_AGO = Number.NEGATIVE_INFINITY as Millis;
const VIEWPORTS_PER_SECOND = 5;
/**
 * Maximum number of remembered fields, as a multiple of the limit of shown fields. Removed fields are remembered too,
 * because their last value may still be on its way.
 */
const FIELDS_REMEMBERED = 2;
export const NOTHING = new Uint8Array(0);

/** Presence of a room, divided equally among its participants. */
const ROOM_BYTES_PER_SECOND = 1024 * 1024;
/** In a very large room: ten pointers and carets a second. */
const MEMBER_BYTES_PER_SECOND_MIN = 2 * 1024;
/** In a small room: a state of 1 KiB at the highest rate of states. */
const MEMBER_BYTES_PER_SECOND_MAX = 32 * 1024;
/** Cost of a field in addition to its name and value. Very small fields cost time by their number, not by their bytes. */
const FIELD_COST_BYTES = 48;
/** Unused bytes are kept for this time, so that a large state now and then does not delay the pointer that follows. */
const UNUSED_MS_MAX = 1_000;

/** Bytes per second that one member may send, with the costs of fields. */
export function memberBytesPerSecond(participants: number): number {
  const share = ROOM_BYTES_PER_SECOND / Math.max(1, participants);
  return Math.min(MEMBER_BYTES_PER_SECOND_MAX, Math.max(MEMBER_BYTES_PER_SECOND_MIN, share));
}

/** The sender's rates from its last state to its next one. Returns whether the bytes of its states delay the next one. */
export function payFor(
  sender: FieldSender,
  fields: readonly PresenceField[],
  rates: { readonly perSecond: number; readonly bytesPerSecond: number },
  now: Millis,
): boolean {
  let bytes = 0;
  for (const { name, value } of fields) bytes += FIELD_COST_BYTES + name.length + value.byteLength;
  sender.nextAt = nextAfter(sender.nextAt, 1000 / rates.perSecond, now);
  sender.paidAt = (Math.max(sender.paidAt, now - UNUSED_MS_MAX) + (bytes * 1000) / rates.bytesPerSecond) as Millis;
  if (sender.paidAt <= sender.nextAt) return false;
  sender.nextAt = sender.paidAt;
  return true;
}

export function newSender(): FieldSender {
  return { fields: new Map(), bytes: 0, count: 0, nextAt: LONG_AGO, nextViewportAt: LONG_AGO, paidAt: LONG_AGO };
}

/** Takes the fields that may be sent now. */
export function takeWaiting(sender: FieldSender, now: Millis): { fresh: PresenceField[]; again: PresenceField[] } {
  const taken = { fresh: [] as PresenceField[], again: [] as PresenceField[] };
  for (const [name, field] of sender.fields) {
    if (field.stage !== "waiting" || (name === VIEWPORT && now < sender.nextViewportAt)) continue;
    if (name === VIEWPORT) sender.nextViewportAt = nextAfter(sender.nextViewportAt, 1000 / VIEWPORTS_PER_SECOND, now);
    field.stage = "sent";
    field.sentAt = now;
    (field.fresh ? taken.fresh : taken.again).push({ name, value: field.value });
  }
  return taken;
}

/** Undefined: the member has more fields than the gateway remembers. */
export function withFields(
  before: SentFields,
  latest: ReadonlyMap<string, Uint8Array>,
  { memberFieldsMax, repeatMs }: PresenceOutboxOptions,
): SentFields | undefined {
  const rememberedMax = memberFieldsMax * FIELDS_REMEMBERED;
  const next: SentFields = before.size + latest.size > rememberedMax ? new Map(before) : before;
  for (const [name, value] of latest)
    next.set(name, { value, fresh: true, stage: "waiting", sentAt: before.get(name)?.sentAt ?? LONG_AGO, repeatMs });
  if (next.size > rememberedMax) forgetTakenBack(next);
  return next.size > rememberedMax ? undefined : next;
}

/** Removed fields that the room no longer shows, or that were never sent. */
function forgetTakenBack(fields: SentFields): void {
  for (const [name, { value, stage, sentAt }] of fields)
    if (value.byteLength === 0 && (stage === "shown" || sentAt === LONG_AGO)) fields.delete(name);
}

export function hasOtherWaiting(fields: ReadonlyMap<string, SentField>): boolean {
  for (const [name, { stage }] of fields) if (name !== VIEWPORT && stage === "waiting") return true;
  return false;
}

/** Keeps a steady rate: one late send does not delay the following ones. */
function nextAfter(due: Millis, intervalMs: number, now: Millis): Millis {
  return (Math.max(due, now - intervalMs) + intervalMs) as Millis;
}

export function bytesOf(name: string, value: Uint8Array): number {
  return value.byteLength === 0 ? 0 : name.length + value.byteLength;
}
