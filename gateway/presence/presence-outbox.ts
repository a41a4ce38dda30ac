/**
 * The fields that members of this gateway show, from their arrival until the room shows them. Only the newest value of
 * a field counts, so values that arrive faster than the rate are never sent. A field that the room does not show after
 * a while is sent again, at growing intervals.
 */

import type { PresenceMemberState } from "../../shared/bus/presence-messages.ts";
import type { ClientId, Millis } from "../../shared/ids.ts";
import { LazyMap, LazySet } from "../../shared/collections/lazy-map.ts";
import { type PresenceField, VIEWPORT } from "../../shared/wire/presence.ts";

export type PresenceOutboxOptions = {
  /** Of all fields of one member, names and values together. */
  readonly memberBytesMax: number;
  readonly memberFieldsMax: number;
  /** Minimum interval between two sends of one room. */
  readonly flushMs: number;
  /** Time after which a field that the room does not show is sent again. */
  readonly repeatMs: number;
};

/** The value that the room shows of a client's field. Undefined: none. */
export type ShownValue = (client: ClientId, name: string) => Uint8Array | undefined;

/** `sentAt`: when any value of the field was last sent; LONG_AGO: never. */
type Field = { value: Uint8Array; fresh: boolean; stage: "waiting" | "sent" | "shown"; sentAt: Millis; repeatMs: number };
type Fields = Map<string, Field>;
type Sender = { readonly fields: Fields; readonly bytes: number; readonly count: number; nextAt: Millis; nextViewportAt: Millis };

const NEVER = Number.POSITIVE_INFINITY as Millis;
const LONG_AGO = Number.NEGATIVE_INFINITY as Millis;
const VIEWPORTS_PER_SECOND = 5;
/**
 * Removed fields are remembered too, because their last value may still be on its way: so many times the limit of shown
 * fields.
 */
const FIELDS_REMEMBERED = 2;
/** The interval doubles with each repetition, up to this limit. */
const REPEAT_MS_MAX = 8_000;

export class PresenceOutbox {
  readonly #options: PresenceOutboxOptions;
  readonly #senders = new LazyMap<ClientId, Sender>();
  /** Clients with fields to send, and clients with sent fields that the room does not show yet. */
  readonly #waiting = new LazySet<ClientId>();
  readonly #unshown = new LazySet<ClientId>();
  #flushAt = LONG_AGO;

  constructor(options: PresenceOutboxOptions) {
    this.#options = options;
  }

  /**
   * False: the fields exceed a member's limits, and those shown before stay. The values are kept, so they must not be
   * lent.
   */
  set(client: ClientId, fields: readonly PresenceField[]): boolean {
    const sender = this.#senders.get(client) ?? { fields: new Map(), bytes: 0, count: 0, nextAt: LONG_AGO, nextViewportAt: LONG_AGO };
    const latest = new Map(fields.map(({ name, value }) => [name, value])); // A client may name a field twice: only the last value counts.
    let { bytes, count } = sender;
    for (const [name, value] of latest) {
      const before = sender.fields.get(name)?.value ?? NOTHING;
      bytes += bytesOf(name, value) - bytesOf(name, before);
      count += Math.sign(value.byteLength) - Math.sign(before.byteLength);
    }
    if (latest.size === 0) return true;
    if (bytes > this.#options.memberBytesMax || count > this.#options.memberFieldsMax) return false;
    const next = withFields(sender.fields, latest, this.#options);
    if (next === undefined) return false;
    this.#senders.set(client, Object.assign(sender, { bytes, count, fields: next }));
    this.#waiting.add(client);
    return true;
  }

  remove(client: ClientId): void {
    this.#senders.delete(client);
    this.#waiting.delete(client);
    this.#unshown.delete(client);
  }

  /** The room now shows these fields of a client. */
  receiveShown(client: ClientId, fields: readonly PresenceField[]): void {
    const sender = this.#senders.get(client);
    if (sender === undefined) return;
    for (const { name, value } of fields) {
      const field = sender.fields.get(name);
      if (field === undefined || field.stage === "waiting") continue;
      // A different value is an earlier one, or came over another gateway that the client has left or joined.
      field.stage = isSame(field.value, value) ? "shown" : "sent";
      if (field.stage === "sent") this.#unshown.add(client);
    }
  }

  /** The room lost what the clients showed: the owner is new, or the clients are new to it. */
  resend(clients: Iterable<ClientId> = this.#senders.keys()): void {
    for (const client of clients) {
      const sender = this.#senders.get(client);
      if (sender === undefined || sender.fields.size === 0) continue;
      for (const field of sender.fields.values())
        if (field.stage !== "waiting") Object.assign(field, { stage: "waiting", fresh: false, repeatMs: this.#options.repeatMs });
      sender.nextAt = LONG_AGO;
      sender.nextViewportAt = LONG_AGO;
      this.#waiting.add(client);
    }
  }

  /** When there is something to send. */
  get dueAt(): Millis {
    if (this.#waiting.size === 0) return NEVER;
    let first = NEVER;
    for (const client of this.#waiting) {
      const { fields, nextAt, nextViewportAt } = this.#senders.get(client)!;
      const onlyViewport = fields.get(VIEWPORT)?.stage === "waiting" && !hasOtherWaiting(fields);
      const dueAt = onlyViewport ? (Math.max(nextAt, nextViewportAt) as Millis) : nextAt;
      if (dueAt < first) first = dueAt;
      if (first <= this.#flushAt) break;
    }
    return Math.max(first, this.#flushAt) as Millis;
  }

  /** The fields to send now, limited to the rate of each client. */
  takeDue(perSecond: number, now: Millis): { fresh: PresenceMemberState[]; again: PresenceMemberState[] } {
    const due = { fresh: [] as PresenceMemberState[], again: [] as PresenceMemberState[] };
    if (now < this.#flushAt) return due;
    for (const client of this.#waiting) {
      const sender = this.#senders.get(client)!;
      if (now < sender.nextAt) continue;
      const taken = takeWaiting(sender, now);
      if (!hasOtherWaiting(sender.fields) && sender.fields.get(VIEWPORT)?.stage !== "waiting") this.#waiting.delete(client);
      if (taken.fresh.length + taken.again.length === 0) continue;
      if (taken.fresh.length > 0) due.fresh.push({ client, fields: taken.fresh });
      if (taken.again.length > 0) due.again.push({ client, fields: taken.again });
      sender.nextAt = nextAfter(sender.nextAt, 1000 / perSecond, now);
      this.#unshown.add(client);
    }
    if (due.fresh.length + due.again.length > 0) this.#flushAt = (now + this.#options.flushMs) as Millis;
    return due;
  }

  /** The caller calls this at intervals: sent fields that the room does not show are scheduled again. */
  findUnshown(shown: ShownValue, now: Millis): void {
    for (const client of this.#unshown) {
      const { fields } = this.#senders.get(client)!;
      // Deltas contain only changes, not values that the room showed before.
      this.receiveShown(
        client,
        [...fields.keys()].map((name) => ({ name, value: shown(client, name) ?? NOTHING })),
      );
      let hasSent = false;
      for (const field of fields.values()) {
        if (field.stage !== "sent") continue;
        hasSent = true;
        if (now - field.sentAt < field.repeatMs) continue;
        field.stage = "waiting";
        field.fresh = false;
        field.repeatMs = Math.min(2 * field.repeatMs, REPEAT_MS_MAX);
        this.#waiting.add(client);
      }
      if (!hasSent) this.#unshown.delete(client);
    }
  }

  /** Whether `findUnshown` may find something. */
  get hasUnshown(): boolean {
    return this.#unshown.size > 0;
  }
}

const NOTHING = new Uint8Array(0);

function takeWaiting(sender: Sender, now: Millis): { fresh: PresenceField[]; again: PresenceField[] } {
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

/** Undefined: more fields than the gateway remembers of one member. */
function withFields(
  before: Fields,
  latest: ReadonlyMap<string, Uint8Array>,
  { memberFieldsMax, repeatMs }: PresenceOutboxOptions,
): Fields | undefined {
  const rememberedMax = memberFieldsMax * FIELDS_REMEMBERED;
  const next: Fields = before.size + latest.size > rememberedMax ? new Map(before) : before;
  for (const [name, value] of latest)
    next.set(name, { value, fresh: true, stage: "waiting", sentAt: before.get(name)?.sentAt ?? LONG_AGO, repeatMs });
  if (next.size > rememberedMax) forgetTakenBack(next);
  return next.size > rememberedMax ? undefined : next;
}

/** Removed fields that the room no longer shows, or that were never sent. */
function forgetTakenBack(fields: Fields): void {
  for (const [name, { value, stage, sentAt }] of fields)
    if (value.byteLength === 0 && (stage === "shown" || sentAt === LONG_AGO)) fields.delete(name);
}

function hasOtherWaiting(fields: ReadonlyMap<string, Field>): boolean {
  for (const [name, { stage }] of fields) if (name !== VIEWPORT && stage === "waiting") return true;
  return false;
}

/** Keeps a steady rate: one late send does not delay the following ones. */
function nextAfter(due: Millis, intervalMs: number, now: Millis): Millis {
  return (Math.max(due, now - intervalMs) + intervalMs) as Millis;
}

function bytesOf(name: string, value: Uint8Array): number {
  return value.byteLength === 0 ? 0 : name.length + value.byteLength;
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  return a.byteLength === b.byteLength && a.every((byte, index) => byte === b[index]);
}
