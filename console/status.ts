/**
 * What the page says about its connection, in words: facts in, sentences out. It never says "Saved" of
 * something that is not, and whatever is wrong comes with what the reader can do about it.
 */

import type { Outage, SavingState, Status } from "@coroom/client";

import { type Notice, NOTICES, type State } from "./notices.ts";

export type Facts = {
  readonly status: Status;
  /** The document has been here whole, at least once. */
  readonly loaded: boolean;
  /** The server is reached, and lets nobody into the room for now. */
  readonly putOff: Outage["reason"];
  /** The room was deleted for good. */
  readonly deleted: boolean;
  /** The server's snapshot of the document cannot be had, which is needed here. */
  readonly lacksContent: boolean;
  readonly saving: SavingState;
  readonly mayWrite: boolean;
  /** Nothing made here is without its acknowledgement, also of what the log may have lost: then it can be false with no edit counted. */
  readonly saved: boolean;
  readonly unsavedEdits: number;
  /** Edits are kept on this device until they are saved, not only in this tab. */
  readonly keptHere: boolean;
  /** Something was pasted that the server does not take; nothing after it is saved either. */
  readonly tooLarge: boolean;
  readonly seq: number;
  /** From the first keystroke not saved until all was. */
  readonly lastSaveMs: number | undefined;
};

export type Tone = "calm" | "good" | "busy" | "warning" | "trouble";
export type Remark = { readonly tone: Tone; readonly text: string };

/** The connection alone. */
export function statusRemark({ status, putOff }: Pick<Facts, "status" | "putOff">): Remark {
  if (putOff !== undefined) return { tone: "warning", text: "Connected, not let in yet" };
  switch (status) {
    case "connecting":
      return { tone: "busy", text: "Connecting…" };
    case "connected":
      return { tone: "good", text: "Connected" };
    case "waiting":
      return { tone: "warning", text: "Offline, trying again" };
    case "disconnected":
      return { tone: "warning", text: "Offline" };
    case "stopped":
      return { tone: "trouble", text: "Closed" };
    default: // "degraded"
      return { tone: "warning", text: "Connected, with trouble behind" };
  }
}

/** What deserves a sentence of its own; undefined when all is well. */
export function noticeFor(facts: Facts): Notice | undefined {
  return NOTICES[stateOf(facts)];
}

/** The few words in the bar. */
export function saveRemark(facts: Facts): Remark {
  return REMARKS[stateOf(facts)](facts);
}

/** The first that holds: what goes wrong further from the document is told before what goes wrong nearer to it. */
function stateOf(facts: Facts): State {
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

/** That a tenant has too many rooms is the server's affair: to whoever opens one it is not available. */
function roomState(putOff: NonNullable<Facts["putOff"]>): "full" | "unavailable" {
  return putOff === "room-full" ? "full" : "unavailable";
}

const OPENING: Remark = { tone: "busy", text: "Opening…" };
const NOT_SAVED: Remark = { tone: "trouble", text: "Not saved" };
const SAVED: Remark = { tone: "good", text: "Saved" };
const SAVING: Remark = { tone: "busy", text: "Saving…" };
const DELETED: Remark = { tone: "trouble", text: "Deleted" };
const READ_ONLY: Remark = { tone: "calm", text: "Read only" };

const offline = ({ unsavedEdits }: Facts): Remark => away("Offline", unsavedEdits);
const waiting = ({ unsavedEdits }: Facts): Remark => away("Waiting", unsavedEdits);
const savedOr =
  (remark: Remark) =>
  ({ saved }: Facts): Remark =>
    saved ? SAVED : remark;

function away(word: string, unsavedEdits: number): Remark {
  return { tone: "warning", text: unsavedEdits > 0 ? `${word}, ${edits(unsavedEdits)} kept here` : word };
}

function withTroubleBehind({ mayWrite, saved, tooLarge, saving }: Facts): Remark {
  if (!mayWrite) return READ_ONLY;
  if (saved) return { tone: "warning", text: "Waiting…" };
  return tooLarge || saving === "refusing" ? NOT_SAVED : SAVING;
}

const REMARKS: Readonly<Record<State, (facts: Facts) => Remark>> = {
  "closed": () => ({ tone: "trouble", text: "Disconnected" }),
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
  "degraded": withTroubleBehind,
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
