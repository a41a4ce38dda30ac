/**
 * Turns the facts about the connection into texts. The page never shows "Saved" while an edit is unsaved, and every
 * problem is shown with a remedy.
 */

import type { Outage, SavingState, Status } from "@coroom/client";

import { type PageNotice, NOTICES, type PageState } from "./notices.ts";

export type PageFacts = {
  readonly status: Status;
  /** The complete document has been loaded at least once. */
  readonly loaded: boolean;
  /** The server is reachable and currently rejects the join. */
  readonly putOff: Outage["reason"];
  /** The room was deleted permanently. */
  readonly deleted: boolean;
  /** The server's snapshot of the document is needed and not available. */
  readonly lacksContent: boolean;
  readonly saving: SavingState;
  readonly mayWrite: boolean;
  /** Every local edit is acknowledged. Can be false with no unsaved edit counted, when the log may have lost edits. */
  readonly saved: boolean;
  readonly unsavedEdits: number;
  /** Unsaved edits are kept on this device, not only in this tab. */
  readonly keptHere: boolean;
  /** A pasted edit is too large for the server. Later edits are not saved either. */
  readonly tooLarge: boolean;
  readonly seq: number;
  /** Time from the first unsaved edit until all edits were saved. */
  readonly lastSaveMs: number | undefined;
};

type RemarkTone = "calm" | "good" | "busy" | "warning" | "error";
export type StatusRemark = { readonly tone: RemarkTone; readonly text: string };

/** Describes only the connection. */
export function statusRemark({ status, putOff }: Pick<PageFacts, "status" | "putOff">): StatusRemark {
  if (putOff !== undefined) return { tone: "warning", text: "Connected, waiting to join" };
  switch (status) {
    case "connecting":
      return { tone: "busy", text: "Connecting…" };
    case "connected":
      return { tone: "good", text: "Connected" };
    case "waiting":
      return { tone: "warning", text: "Offline, reconnecting" };
    case "disconnected":
      return { tone: "warning", text: "Offline" };
    case "stopped":
      return { tone: "error", text: "Closed" };
    default: // "degraded"
      return { tone: "warning", text: "Connected, server has a problem" };
  }
}

/** Returns undefined when the state needs no notice. */
export function noticeFor(facts: PageFacts): PageNotice | undefined {
  return NOTICES[stateOf(facts)];
}

/** The short text in the bar. */
export function saveRemark(facts: PageFacts): StatusRemark {
  return REMARKS[stateOf(facts)](facts);
}

/** The first matching state is used: problems of the connection precede problems of the document. */
function stateOf(facts: PageFacts): PageState {
  const { status, loaded, putOff, deleted, lacksContent, saving, mayWrite, saved, unsavedEdits, keptHere, tooLarge } = facts;
  if (deleted) return loaded ? "deleted" : "opening-deleted";
  if (status === "stopped") return saved ? "closed" : "cut-off";
  if (putOff !== undefined) return loaded ? roomState(putOff) : `opening-${roomState(putOff)}`;
  if (!loaded && status === "waiting") return "opening-late";
  if (!loaded) return lacksContent ? "opening-unreadable" : "opening";
  if (status !== "connected" && status !== "degraded") return keptHere ? "offline" : "offline-in-tab";
  if (!mayWrite && unsavedEdits > 0) return "rights-taken";
  if (status === "degraded") return "degraded";
  if (lacksContent) return "lacking";
  if (!mayWrite) return "reading";
  if (tooLarge) return "too-large";
  if (saving !== "saved") return saving === "refusing" ? "stalled" : "slow";
  return "well";
}

/** A tenant's room limit is not the reader's concern: the page shows the document as unavailable. */
function roomState(putOff: NonNullable<PageFacts["putOff"]>): "full" | "unavailable" {
  return putOff === "room-full" ? "full" : "unavailable";
}

const OPENING: StatusRemark = { tone: "busy", text: "Opening…" };
const NOT_SAVED: StatusRemark = { tone: "error", text: "Not saved" };
const SAVED: StatusRemark = { tone: "good", text: "Saved" };
const SAVING: StatusRemark = { tone: "busy", text: "Saving…" };
const DELETED: StatusRemark = { tone: "error", text: "Deleted" };
const READ_ONLY: StatusRemark = { tone: "calm", text: "Read only" };

const offline = ({ unsavedEdits }: PageFacts): StatusRemark => away("Offline", unsavedEdits);
const waiting = ({ unsavedEdits }: PageFacts): StatusRemark => away("Waiting", unsavedEdits);
const savedOr =
  (remark: StatusRemark) =>
  ({ saved }: PageFacts): StatusRemark =>
    saved ? SAVED : remark;

function away(word: string, unsavedEdits: number): StatusRemark {
  return { tone: "warning", text: unsavedEdits > 0 ? `${word}, ${edits(unsavedEdits)} kept here` : word };
}

function degradedRemark({ mayWrite, saved, tooLarge, saving }: PageFacts): StatusRemark {
  if (!mayWrite) return READ_ONLY;
  if (saved) return { tone: "warning", text: "Waiting…" };
  return tooLarge || saving === "refusing" ? NOT_SAVED : SAVING;
}

const REMARKS: Readonly<Record<PageState, (facts: PageFacts) => StatusRemark>> = {
  "closed": () => ({ tone: "error", text: "Disconnected" }),
  "cut-off": () => NOT_SAVED,
  "deleted": () => DELETED,
  "opening": () => OPENING,
  "opening-deleted": () => DELETED,
  "opening-late": () => OPENING,
  "opening-full": () => OPENING,
  "opening-unavailable": () => OPENING,
  "opening-unreadable": () => OPENING,
  "full": waiting,
  "unavailable": waiting,
  "offline": offline,
  "offline-in-tab": offline,
  "rights-taken": () => NOT_SAVED,
  "degraded": degradedRemark,
  "reading": () => READ_ONLY,
  "lacking": ({ mayWrite, saved }) => (!mayWrite ? READ_ONLY : saved ? SAVED : SAVING),
  "too-large": savedOr(NOT_SAVED),
  "stalled": savedOr(NOT_SAVED),
  "slow": savedOr(SAVING),
  "well": savedOr(SAVING),
};

function edits(count: number): string {
  return count === 1 ? "1 edit" : `${count.toLocaleString("en")} edits`;
}
