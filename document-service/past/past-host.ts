/**
 * One room's past as people ask for it: its versions, its state at a seq or a time, who wrote when, and the edit that
 * brings an old state back. What is read is named by an entry that may be replaced meanwhile, and its objects gone: then
 * once more, by the newer one.
 */

import type { Position, RoomKey, Seq, UnixMillis } from "../../shared/ids.ts";
import { headOf } from "../../shared/bus/record.ts";
import { type History, type Reading, type Segment, waysTo } from "./history.ts";
import type { HistoryHost, Named } from "./history-host.ts";
import type { MergedState } from "../rooms/document.ts";
import { EMPTY_STATE } from "../rooms/merge.ts";
import type { Digest, EditLog, Histories, ObjectStore, Reverting, Unread } from "../ports.ts";
import type { Reverted } from "./reverting.ts";
import { decodeSegment, editsBetween, type Session, seqAt, sessionsOf, type Taken, takenFrom } from "./segments.ts";
import { readVerified } from "../rooms/verified-write-host.ts";

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

export type PastPorts = { readonly log: EditLog; readonly histories: Histories; readonly history: ObjectStore; readonly reverting: Reverting; readonly digest: Digest };
export type PastOptions = { readonly historySessionMsMax: number; readonly historyReadBytesMax: number };

export class PastHost {
  readonly #room: RoomKey;
  readonly #ports: PastPorts;
  readonly #options: PastOptions;
  readonly #history: HistoryHost;
  /** The document as it is now; undefined: it cannot be had at the moment. */
  readonly #present: () => Promise<MergedState | undefined>;

  constructor(room: RoomKey, ports: PastPorts, options: PastOptions, { history, present }: { history: HistoryHost; present: () => Promise<MergedState | undefined> }) {
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

  /** Who wrote from this seq on: of one segment at a time, then of the log. */
  async sessions(from: Seq): Promise<Sessions> {
    const history = await this.list();
    for (const segment of [...history.segments.filter(({ lastSeq }) => lastSeq >= from), undefined]) {
      const all = segment === undefined ? await this.#tail(history) : await this.#recordsOf(segment);
      const taken = all === "too-much" ? [] : (all ?? []).filter(({ record }) => headOf(record) >= from);
      const last = taken.at(-1);
      if (last !== undefined) return { sessions: sessionsOf(taken, this.#options.historySessionMsMax), through: headOf(last.record) };
    }
    return { sessions: [], through: (from - 1) as Seq };
  }

  async #readAt(moment: Moment, signal: AbortSignal | undefined): Promise<Past> {
    const history = await this.list();
    const tail = await this.#tail(history);
    if (tail === "too-much") return { kind: "too-much" };
    const last = tail.at(-1);
    const head = Math.max(last === undefined ? 0 : headOf(last.record), history.segments.at(-1)?.lastSeq ?? 0, history.versions.at(-1)?.seq ?? 0) as Seq;
    const target = "seq" in moment ? moment.seq : await this.#seqAt(moment.time, history, tail);
    if (target === undefined) return { kind: "not-kept" };
    if (target > head) return { kind: "not-yet", head };
    for (const way of waysTo(history, target)) {
      const past = await this.#follow(way, target, tail, signal);
      if (past !== undefined) return past;
    }
    return { kind: "not-kept" };
  }

  /** Undefined: an object is gone or damaged, or edits are missing. Another way may lead there. */
  async #follow({ base, segments }: Reading, target: Seq, tail: readonly Taken[], signal: AbortSignal | undefined): Promise<Past | undefined> {
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
    const edits = editsBetween([...taken, ...tail], base?.seq ?? (0 as Seq), target);
    if (edits.kind === "missing") return undefined;
    if (edits.payloads.length === 0) return { kind: "state", state, position: { epoch: base?.epoch ?? edits.epoch, seq: target } };
    const merged = await reverting.mergePast(state, edits.payloads, signal);
    return typeof merged === "string" ? noPast(merged) : { kind: "state", state: merged.state, position: { epoch: edits.epoch, seq: target } };
  }

  /** The last seq at the time; 0 where the room begins after it. */
  async #seqAt(time: UnixMillis, { segments }: History, tail: readonly Taken[]): Promise<Seq | undefined> {
    const inTail = seqAt(tail, time);
    if (inTail !== undefined) return inTail;
    const segment = segments.findLast(({ firstTime }) => firstTime <= time);
    if (segment !== undefined) {
      const taken = await this.#recordsOf(segment);
      return taken && (seqAt(taken, time) ?? ((segment.firstSeq - 1) as Seq));
    }
    const first = segments[0]?.firstSeq ?? tail[0]?.record.edits.firstSeq;
    return first === 1 ? (0 as Seq) : undefined;
  }

  async #recordsOf(segment: Segment): Promise<Taken[] | undefined> {
    const bytes = await readVerified(this.#ports.history, this.#ports.digest, segment);
    const records = bytes && decodeSegment(bytes);
    return records && takenFrom(records);
  }

  /** What is in the log and in no segment. */
  async #tail(history: History): Promise<Taken[] | "too-much"> {
    const records = [];
    let bytes = 0;
    for await (const record of this.#ports.log.read(this.#room, history.through, Number.MAX_SAFE_INTEGER)) {
      records.push({ ...record, bytes: record.bytes.slice() });
      bytes += record.bytes.byteLength;
      if (bytes > this.#options.historyReadBytesMax) return "too-much";
    }
    return takenFrom(records);
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
