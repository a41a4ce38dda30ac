/**
 * What this gateway's members show of themselves, from when they say it until the room shows it. Of a field only the
 * newest value counts, so what comes faster than it may go on is never sent; and what the room does not show after a
 * while, because it was lost or the owner is another, is told again, ever more seldom.
 */

import type { MemberState } from "../../shared/bus/presence-messages.ts";
import type { ClientId, Millis } from "../../shared/ids.ts";
import { SeldomMap, SeldomSet } from "../../shared/seldom.ts";
import { type PresenceField, VIEWPORT } from "../../shared/wire/presence.ts";

export type PresenceOutboxOptions = {
  /** Of all fields of one member, names and values. */
  readonly memberBytesMax: number;
  readonly memberFieldsMax: number;
  /** The shortest time between two tellings of a room's. */
  readonly flushMs: number;
  /** Not shown for so long, a field is told again. */
  readonly repeatMs: number;
};

/** What the room shows of a client now. Undefined: nothing. */
export type Shown = (client: ClientId, name: string) => Uint8Array | undefined;

/** `toldAt`: of any value that it had; LONG_AGO if nobody was ever told of it. */
type Field = { value: Uint8Array; fresh: boolean; stage: "waiting" | "told" | "shown"; toldAt: Millis; repeatMs: number };
type Fields = Map<string, Field>;
type Sender = { readonly fields: Fields; readonly bytes: number; readonly count: number; nextAt: Millis; nextViewportAt: Millis };

const NEVER = Number.POSITIVE_INFINITY as Millis;
const LONG_AGO = Number.NEGATIVE_INFINITY as Millis;
const VIEWPORTS_PER_SECOND = 5;
/** Fields taken back are remembered too: what shows them may still be on its way. So many times the fields that may be shown. */
const FIELDS_REMEMBERED = 2;
/** Told again in vain, a field is told half as often each time, down to this. */
const REPEAT_MS_MAX = 8_000;

export class PresenceOutbox {
  readonly #options: PresenceOutboxOptions;
  readonly #senders = new SeldomMap<ClientId, Sender>();
  /** Those with something to tell, and those with something told that the room has not shown. */
  readonly #waiting = new SeldomSet<ClientId>();
  readonly #unshown = new SeldomSet<ClientId>();
  #flushAt = LONG_AGO;

  constructor(options: PresenceOutboxOptions) {
    this.#options = options;
  }

  /** False: more than one member may show; what was shown before stays. Values are kept: not lent ones. */
  set(client: ClientId, fields: readonly PresenceField[]): boolean {
    const sender = this.#senders.get(client) ?? { fields: new Map(), bytes: 0, count: 0, nextAt: LONG_AGO, nextViewportAt: LONG_AGO };
    const latest = new Map(fields.map(({ name, value }) => [name, value])); // Nobody keeps a client from naming a field twice: the last counts, and once.
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

  /** The room shows these fields of a client's now. */
  receiveShown(client: ClientId, fields: readonly PresenceField[]): void {
    const sender = this.#senders.get(client);
    if (sender === undefined) return;
    for (const { name, value } of fields) {
      const field = sender.fields.get(name);
      if (field === undefined || field.stage === "waiting") continue;
      // Another value is an earlier one; or another gateway's, that the client has moved to or come from.
      field.stage = isSame(field.value, value) ? "shown" : "told";
      if (field.stage === "told") this.#unshown.add(client);
    }
  }

  /** The room shows nothing of what it showed: its owner is another, or one client is new to it. */
  tellAgain(clients: Iterable<ClientId> = this.#senders.keys()): void {
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

  /** When something is to be told. */
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

  /** What to tell now: of each sender at most so often a second. */
  takeDue(perSecond: number, now: Millis): { fresh: MemberState[]; again: MemberState[] } {
    const due = { fresh: [] as MemberState[], again: [] as MemberState[] };
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

  /** To be called every so often: what was told and is not shown waits to be told again. */
  findUnshown(shown: Shown, now: Millis): void {
    for (const client of this.#unshown) {
      const { fields } = this.#senders.get(client)!;
      // News tell only what changed: what the room showed already is not told by them.
      this.receiveShown(
        client,
        [...fields.keys()].map((name) => ({ name, value: shown(client, name) ?? NOTHING })),
      );
      let hasTold = false;
      for (const field of fields.values()) {
        if (field.stage !== "told") continue;
        hasTold = true;
        if (now - field.toldAt < field.repeatMs) continue;
        field.stage = "waiting";
        field.fresh = false;
        field.repeatMs = Math.min(2 * field.repeatMs, REPEAT_MS_MAX);
        this.#waiting.add(client);
      }
      if (!hasTold) this.#unshown.delete(client);
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
    field.stage = "told";
    field.toldAt = now;
    (field.fresh ? taken.fresh : taken.again).push({ name, value: field.value });
  }
  return taken;
}

/** Undefined: there would be more to remember than is remembered of one member. */
function withFields(
  before: Fields,
  latest: ReadonlyMap<string, Uint8Array>,
  { memberFieldsMax, repeatMs }: PresenceOutboxOptions,
): Fields | undefined {
  const rememberedMax = memberFieldsMax * FIELDS_REMEMBERED;
  const next: Fields = before.size + latest.size > rememberedMax ? new Map(before) : before;
  for (const [name, value] of latest)
    next.set(name, { value, fresh: true, stage: "waiting", toldAt: before.get(name)?.toldAt ?? LONG_AGO, repeatMs });
  if (next.size > rememberedMax) forgetTakenBack(next);
  return next.size > rememberedMax ? undefined : next;
}

/** Those that the room does not show any more, and those that nobody was ever told of. */
function forgetTakenBack(fields: Fields): void {
  for (const [name, { value, stage, toldAt }] of fields)
    if (value.byteLength === 0 && (stage === "shown" || toldAt === LONG_AGO)) fields.delete(name);
}

function hasOtherWaiting(fields: ReadonlyMap<string, Field>): boolean {
  for (const [name, { stage }] of fields) if (name !== VIEWPORT && stage === "waiting") return true;
  return false;
}

/** A steady rate: being late once does not put off what follows. */
function nextAfter(due: Millis, intervalMs: number, now: Millis): Millis {
  return (Math.max(due, now - intervalMs) + intervalMs) as Millis;
}

function bytesOf(name: string, value: Uint8Array): number {
  return value.byteLength === 0 ? 0 : name.length + value.byteLength;
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  return a.byteLength === b.byteLength && a.every((byte, index) => byte === b[index]);
}
