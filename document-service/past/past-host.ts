/**
 * One room's past as people ask for it: its versions, its state at a seq or a time, who wrote when, and the edit that
 * brings an old state back. What is read is named by an entry that may be replaced meanwhile, and its objects gone: then
 * once more, by the newer one.
 */

import type { Position, RoomKey, Seq, UnixMillis } from "../../shared/ids.ts";
import { headOf } from "../../shared/bus/record.ts";
import { type History, type Reading, type Segment, waysTo } from "./history.ts";
import type { HistoryHost, Named, Present } from "./history-host.ts";
import { EMPTY_STATE } from "../merge.ts";
import type { Digest, EditLog, Histories, ObjectStore, Reverting, Unread } from "../ports.ts";
import type { Reverted } from "./reverting.ts";
import { decodeSegment, editsBetween, type Session, seqAt, sessionsOf, type Taken, takenFrom } from "./segments.ts";
import { readVerified } from "../verified-write-host.ts";

export type Moment = { readonly seq: Seq } | { readonly time: UnixMillis };
export type NoPast =
  /** The room has not come so far. */
  | { readonly kind: "not-yet"; readonly head: Seq }
  /** It is not kept any more, or was not yet. */
  | { readonly kind: "not-kept" }
  /** More edits than a question may read, or they take too long. */
  | { readonly kind: "too-much" }
  /** What is kept of it cannot be read. */
  | { readonly kind: "unreadable" }
  /** Not now: ask again. */
  | { readonly kind: "loading" };
export type Past = { readonly kind: "state"; readonly state: Uint8Array; readonly position: Position } | NoPast;
/** Whoever wants more asks from `through + 1`. */
export type Sessions = { readonly sessions: readonly Session[]; readonly through: Seq };

export type PastPorts = {
  readonly log: EditLog;
  readonly histories: Histories;
  readonly history: ObjectStore;
  readonly reverting: Reverting;
  readonly digest: Digest;
};
export type PastOptions = { readonly historySessionMsMax: number; readonly historyReadBytesMax: number };

export class PastHost {
  readonly #room: RoomKey;
  readonly #ports: PastPorts;
  readonly #options: PastOptions;
  readonly #history: HistoryHost;
  /** The document as it is now; undefined: it cannot be had at the moment. */
  readonly #present: () => Promise<Present | undefined>;

  constructor(
    room: RoomKey,
    ports: PastPorts,
    options: PastOptions,
    { history, present }: { history: HistoryHost; present: () => Promise<Present | undefined> },
  ) {
    this.#room = room;
    this.#ports = ports;
    this.#options = options;
    this.#history = history;
    this.#present = present;
  }

  async list(): Promise<History> {
    return (await this.#ports.histories.read(this.#room)).history;
  }

  /** The document as it is now, under a name. */
  async name(name: string): Promise<Named | { readonly kind: "loading" | "no-document" }> {
    const present = await this.#present();
    if (present === undefined) return { kind: "loading" };
    return present.applied.seq === 0 ? { kind: "no-document" } : this.#history.addVersion(present, name);
  }

  /** Whether there was one. */
  removeVersion(id: string): Promise<boolean> {
    return this.#history.removeVersion(id);
  }

  /** `signal`: aborted once nobody waits for it. */
  async readAt(moment: Moment, signal?: AbortSignal): Promise<Past> {
    const first = await this.#readAt(moment, signal);
    return first.kind === "not-kept" ? this.#readAt(moment, signal) : first;
  }

  /** The edit that makes the document of now what it was. Who sends it decides whether anything is brought back. */
  async revert(moment: Moment, signal?: AbortSignal): Promise<Reverted | NoPast> {
    const past = await this.readAt(moment, signal);
    if (past.kind !== "state") return past;
    const present = await this.#present();
    const reverted = present === undefined ? "busy" : await this.#ports.reverting.revert(present.state, past.state);
    return typeof reverted === "string" ? noPast(reverted) : reverted;
  }

  /** Who wrote from this seq on: of one segment at a time, then of the log, as much as a question may read. */
  async sessions(from: Seq, signal?: AbortSignal): Promise<Sessions> {
    const history = await this.list();
    for (const segment of [...history.segments.filter(({ lastSeq }) => lastSeq >= from), undefined]) {
      const all =
        segment === undefined
          ? (await this.#tail(history, { after: (from - 1) as Seq, through: Number.POSITIVE_INFINITY }, signal)).taken
          : await this.#recordsOf(segment);
      const taken = (all ?? []).filter(({ record }) => headOf(record) >= from);
      const last = taken.at(-1);
      if (last !== undefined) return { sessions: sessionsOf(taken, this.#options.historySessionMsMax), through: headOf(last.record) };
    }
    return { sessions: [], through: (from - 1) as Seq };
  }

  async #readAt(moment: Moment, signal: AbortSignal | undefined): Promise<Past> {
    const history = await this.list();
    const target = "seq" in moment ? moment.seq : await this.#seqAt(moment.time, history, signal);
    if (signal?.aborted === true) return { kind: "loading" }; // Nobody hears of it.
    if (target === undefined) return { kind: "not-kept" };
    const head = await this.#headFor(target, history);
    if (target > head) return { kind: "not-yet", head };
    for (const way of waysTo(history, target)) {
      const past = await this.#follow(way, target, history, signal);
      if (past !== undefined) return past;
    }
    return { kind: "not-kept" };
  }

  /** The last seq that there is, or one that is as far as the target. */
  async #headFor(target: Seq, { segments, versions }: History): Promise<Seq> {
    const known = Math.max(segments.at(-1)?.lastSeq ?? 0, versions.at(-1)?.seq ?? 0) as Seq;
    if (target <= known) return known;
    const end = await this.#ports.log.end(this.#room);
    return end.kind === "at" && end.seq > known ? end.seq : known;
  }

  /** Undefined: an object is gone or damaged, or edits are missing. Another way may lead there. */
  async #follow({ base, segments }: Reading, target: Seq, kept: History, signal: AbortSignal | undefined): Promise<Past | undefined> {
    const { history, digest, reverting } = this.#ports;
    if (segments.reduce((sum, { bytes }) => sum + bytes, 0) > this.#options.historyReadBytesMax) return { kind: "too-much" };
    const state = base === undefined ? EMPTY_STATE : await readVerified(history, digest, base);
    if (state === undefined) return undefined;
    const taken: Taken[] = [];
    for (const segment of segments) {
      const records = await this.#recordsOf(segment);
      if (records === undefined) return undefined;
      taken.push(...records);
    }
    const after = base?.seq ?? (0 as Seq);
    const isInTail = Math.max(after, segments.at(-1)?.lastSeq ?? 0) < target;
    const tail = isInTail ? await this.#tail(kept, { after, through: target }, signal) : { taken: [], isCut: false };
    if (tail.isCut) return { kind: "too-much" };
    const edits = editsBetween([...taken, ...tail.taken], after, target);
    if (edits.kind === "missing") return undefined;
    if (edits.payloads.length === 0) return { kind: "state", state, position: { epoch: base?.epoch ?? edits.epoch, seq: target } };
    const merged = await reverting.mergePast(state, edits.payloads, signal);
    return typeof merged === "string"
      ? noPast(merged)
      : { kind: "state", state: merged.state, position: { epoch: edits.epoch, seq: target } };
  }

  /** The last seq at the time; 0 where the room begins after it. */
  async #seqAt(time: UnixMillis, history: History, signal: AbortSignal | undefined): Promise<Seq | undefined> {
    const { segments } = history;
    const newest = segments.at(-1);
    const inTail = newest === undefined || newest.lastTime <= time ? await this.#seqInTail(time, history, signal) : undefined;
    if (inTail !== undefined && (inTail > 0 || newest === undefined)) return inTail;
    const segment = segments.findLast(({ firstTime }) => firstTime <= time);
    if (segment !== undefined) {
      const taken = await this.#recordsOf(segment);
      return taken && (seqAt(taken, time) ?? ((segment.firstSeq - 1) as Seq));
    }
    return newest !== undefined && segments[0]?.firstSeq === 1 ? (0 as Seq) : undefined;
  }

  /** Undefined: the tail begins after the time, and not with the room's first edit. */
  async #seqInTail(time: UnixMillis, { through }: History, signal: AbortSignal | undefined): Promise<Seq | undefined> {
    let at: Seq | undefined;
    for await (const stored of this.#ports.log.read(this.#room, through, Number.MAX_SAFE_INTEGER)) {
      if (signal?.aborted === true) return undefined;
      const [taken] = takenFrom([stored]);
      if (taken === undefined) continue;
      if (taken.time > time) return at ?? (taken.record.edits.firstSeq === 1 ? (0 as Seq) : undefined);
      at = headOf(taken.record);
    }
    return at;
  }

  async #recordsOf(segment: Segment): Promise<Taken[] | undefined> {
    const bytes = await readVerified(this.#ports.history, this.#ports.digest, segment);
    const records = bytes && decodeSegment(bytes);
    return records && takenFrom(records);
  }

  /**
   * The edits in `after < seq <= through` that are in the log and in no segment. `isCut`: there are more, and these
   * are as many as a question may read, or its signal is aborted.
   */
  async #tail(
    { through: archived }: History,
    { after, through }: { readonly after: Seq; readonly through: number },
    signal: AbortSignal | undefined,
  ): Promise<{ readonly taken: readonly Taken[]; readonly isCut: boolean }> {
    const taken: Taken[] = [];
    let [bytes, lastStreamSeq] = [0, 0];
    for await (const stored of this.#ports.log.read(this.#room, archived, Number.MAX_SAFE_INTEGER)) {
      if (signal?.aborted === true) return { taken, isCut: true };
      const [one] = stored.streamSeq > lastStreamSeq ? takenFrom([stored]) : [];
      lastStreamSeq = Math.max(lastStreamSeq, stored.streamSeq);
      if (one === undefined || headOf(one.record) <= after) continue;
      bytes += stored.bytes.byteLength;
      if (bytes > this.#options.historyReadBytesMax) return { taken, isCut: true };
      taken.push(one);
      if (headOf(one.record) >= through) break;
    }
    return { taken, isCut: false };
  }
}

function noPast(why: Unread): NoPast {
  switch (why) {
    case "busy":
      return { kind: "loading" };
    case "overran":
      return { kind: "too-much" };
    default:
      return { kind: why };
  }
}
