/**
 * The callers that wait for one room's document. Even if many ask at once, the room merges only once, or twice if a
 * merge was already running when they asked. No caller waits while the merge of a stalled room is tried again.
 */

import type { Seq } from "../../shared/ids.ts";
import { EMPTY_STATE } from "../merge.ts";
import type { MergeUrgency } from "../ports.ts";
import type { Document, MergedState } from "./document.ts";
import type { DocumentMerges, MergeEnd } from "./merges.ts";
import type { DocumentRoomEffect, Freshness, Served } from "./room-messages.ts";

export type DocumentRequest =
  | { readonly kind: "serve"; readonly request: number; readonly freshness: Freshness; readonly minSeq: number }
  | { readonly kind: "read-state"; readonly request: number };

/** `seq`: the merged state must reach it. `isSecond`: the answer is the result of the next merge, at any seq. */
type Merging = { readonly asked: DocumentRequest; readonly seq: Seq; readonly isSecond: boolean };

export class RoomRequests {
  readonly #lagBytesMax: number;
  #unopened: DocumentRequest[] = [];
  #merging: Merging[] = [];

  constructor({ snapshotLagBytesMax }: { readonly snapshotLagBytesMax: number }) {
    this.#lagBytesMax = snapshotLagBytesMax;
  }

  get isMergeWanted(): boolean {
    return this.#merging.length > 0;
  }

  get mergeUrgency(): MergeUrgency {
    return this.isMergeWanted ? "awaited" : "background";
  }

  addUnopened(asked: DocumentRequest): void {
    this.#unopened.push(asked);
  }

  /** The requests that waited until the room opened. */
  takeUnopened(): readonly DocumentRequest[] {
    return this.#unopened.splice(0);
  }

  /** Answers the requests without the document: the room is closed, or its checkpoint may stay undecodable for days. */
  answerUnopened(isDeleted: boolean, effects: DocumentRoomEffect[]): void {
    for (const asked of this.takeUnopened()) effects.push(answer(asked, undefined, isDeleted));
  }

  /** Answers at once if no merge is needed. "answered-without-use": the document itself was not needed. */
  receiveRequest(
    asked: DocumentRequest,
    document: Document,
    isDeleted: boolean,
    { isRetrying }: Pick<DocumentMerges, "isRetrying">,
    effects: DocumentRoomEffect[],
  ): "answered" | "answered-without-use" | "merge" {
    const early = answerWithoutDocument(asked, document, isDeleted);
    if (early !== undefined) {
      effects.push({ kind: "answer", request: asked.request, served: early });
      return "answered-without-use";
    }
    const isLagAllowed = asked.kind === "serve" && asked.freshness === "joinable";
    const nearly = isLagAllowed ? document.nearlyMerged(this.#lagBytesMax) : undefined;
    if (nearly !== undefined) {
      effects.push(answer(asked, nearly, false));
      return "answered";
    }
    if (isRetrying && document.merged !== undefined) {
      effects.push(answerAfterMerge(asked, document.applied.seq, document.merged, { isDeleted, isStalled: true }));
      return "answered";
    }
    this.#merging.push({ asked, seq: document.applied.seq, isSecond: false });
    return "merge";
  }

  /**
   * Answers all callers whose edits are merged. The others wait for a second merge, which includes all edits that they
   * need.
   */
  receiveMergeEnd(end: MergeEnd, state: { readonly isDeleted: boolean; readonly isStalled: boolean }, effects: DocumentRoomEffect[]): void {
    const waiting = this.#merging;
    this.#merging = [];
    const again: Merging[] = [];
    for (const { asked, seq, isSecond } of waiting) {
      if (end.kind === "failed") {
        effects.push({ kind: "answer-failure", request: asked.request, cause: end.failure.cause });
      } else if (end.merged !== undefined && end.merged.applied.seq < seq && !isSecond) {
        again.push({ asked, seq, isSecond: true });
      } else {
        effects.push(answerAfterMerge(asked, seq, end.merged, state));
      }
    }
    this.#merging = again;
  }
}

export function answer(asked: DocumentRequest, merged: MergedState | undefined, isDeleted: boolean): DocumentRoomEffect {
  const { request } = asked;
  return asked.kind === "read-state"
    ? { kind: "answer-state", request, state: merged }
    : { kind: "answer", request, served: isDeleted ? { kind: "deleted" } : servedState(merged) };
}

/**
 * A stalled room serves its last state, unless the caller asks for a later one. That state is never kept as a version, and
 * no earlier state is compared with it, because it lacks edits: those callers need all edits up to `seq`.
 */
function answerAfterMerge(
  asked: DocumentRequest,
  seq: Seq,
  merged: MergedState | undefined,
  { isDeleted, isStalled }: { readonly isDeleted: boolean; readonly isStalled: boolean },
): DocumentRoomEffect {
  const reached = merged?.applied.seq ?? 0;
  if (asked.kind === "read-state") return answer(asked, reached < seq ? undefined : merged, isDeleted);
  const isServed = isDeleted || !isStalled || reached >= Math.max(1, asked.minSeq);
  return isServed ? answer(asked, merged, isDeleted) : { kind: "answer", request: asked.request, served: { kind: "stalled" } };
}

function answerWithoutDocument(asked: DocumentRequest, document: Document, isDeleted: boolean): Served | undefined {
  if (asked.kind === "read-state") return undefined;
  if (isDeleted) return { kind: "deleted" };
  if (document.applied.seq === 0) return { kind: "no-document" };
  return document.applied.seq < asked.minSeq ? { kind: "loading" } : undefined;
}

function servedState(merged: MergedState | undefined): Served {
  if (merged === undefined || merged.applied.seq === 0) return { kind: "loading" };
  const { state, applied, clients, leftOut } = merged;
  if (leftOut > 0 && state.byteLength <= EMPTY_STATE.byteLength) return { kind: "not-a-document" };
  return {
    kind: "snapshot",
    state,
    position: { epoch: applied.epoch, seq: applied.seq },
    last: clients.findLast(({ seq }) => seq === applied.seq),
  };
}
