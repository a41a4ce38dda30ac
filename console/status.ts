/**
 * What the page says about its connection, in words: facts in, sentences out. It never says "Saved" of
 * something that is not, and whatever is wrong comes with what the reader can do about it.
 */

import type { Outage, SavingState, Status } from "@coroom/client";

export type Facts = {
  readonly status: Status;
  /** The document has been here whole, at least once. */
  readonly loaded: boolean;
  /** The server is reached, and lets nobody into the room for now. */
  readonly putOff: Outage["reason"];
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
export type Notice = {
  readonly tone: "calm" | "warning" | "trouble";
  readonly title: string;
  readonly advice: string;
  readonly action: Action | undefined;
};
export type Action = "copy-text" | "reload";

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
  return STATES[stateOf(facts)].notice;
}

/** The few words in the bar. */
export function saveRemark(facts: Facts): Remark {
  return STATES[stateOf(facts)].remark(facts);
}

type State =
  | "closed"
  | "cut-off"
  | "opening"
  | "opening-late"
  | "opening-full"
  | "opening-unavailable"
  | "opening-unreadable"
  | "full"
  | "unavailable"
  | "offline"
  | "offline-in-tab"
  | "rights-taken"
  | "degraded"
  | "reading"
  | "lacking"
  | "too-large"
  | "stalled"
  | "slow"
  | "well";

/** The first that holds: what goes wrong further from the document is told before what goes wrong nearer to it. */
function stateOf({ status, loaded, putOff, lacksContent, saving, mayWrite, saved, unsavedEdits, keptHere, tooLarge }: Facts): State {
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

const OFFLINE: Notice = {
  tone: "warning",
  title: "You are offline.",
  advice: "Keep writing: it is kept on this device, and sent when the connection is back.",
  action: undefined,
};

const OFFLINE_IN_TAB: Notice = {
  ...OFFLINE,
  advice: "Keep writing, and leave this tab open: what you write is kept in it, and sent when the connection is back.",
};

const DEGRADED: Notice = {
  tone: "warning",
  title: "The server has trouble.",
  advice: "Keep writing: it is kept, and reaches the others when the trouble is over.",
  action: undefined,
};

const UNREACHABLE: Notice = {
  tone: "warning",
  title: "The document cannot be reached.",
  advice: "It opens here by itself as soon as there is a connection.",
  action: undefined,
};

const READING: Notice = {
  tone: "calm",
  title: "You are reading along.",
  advice: "Changes by others appear as they are made. To write, ask for a link that allows it.",
  action: undefined,
};

const RIGHTS_TAKEN: Notice = {
  tone: "trouble",
  title: "Your last edits are not saved.",
  advice: "You may only read here now. Take a copy of your text, or ask for the right to write: then they are sent.",
  action: "copy-text",
};

const SLOW: Notice = {
  tone: "calm",
  title: "Saving takes longer than usual.",
  advice: "Keep writing, and leave this tab open until it says Saved.",
  action: undefined,
};

const STALLED: Notice = {
  tone: "trouble",
  title: "Nothing can be saved right now.",
  advice: "What you wrote is still in this tab, and it is sent again as soon as saving works. Keep the tab open, or take a copy.",
  action: "copy-text",
};

const TOO_LARGE: Notice = {
  tone: "trouble",
  title: "Your last change is too large to be saved.",
  advice: "Undo it, and paste it in smaller pieces. What you write after it waits for that.",
  action: "copy-text",
};

const CLOSED: Notice = {
  tone: "trouble",
  title: "This document is closed to you.",
  advice: "Load the page again; if that does not help, ask for a new link.",
  action: "reload",
};

const CUT_OFF: Notice = {
  tone: "trouble",
  title: "Your last edits could not be saved.",
  advice: "The connection was closed for good. Take a copy of your text before you load the page again.",
  action: "copy-text",
};

const FULL: Notice = {
  tone: "warning",
  title: "The document is full: as many people are in it as may be.",
  advice: "It opens here by itself once somebody leaves: it is tried again and again.",
  action: undefined,
};

const UNAVAILABLE: Notice = {
  tone: "warning",
  title: "The document is not available right now.",
  advice: "It opens here by itself as soon as it is: it is tried again and again.",
  action: undefined,
};

const KEEP_OPEN = "Keep writing, and leave this tab open: it is tried again and again, and what you write is sent then.";

const UNREADABLE: Notice = {
  tone: "warning",
  title: "The document cannot be loaded right now.",
  advice: "You are connected, but its content is missing. It is tried again, and opens here by itself.",
  action: undefined,
};

const LACKING: Notice = {
  tone: "warning",
  title: "What others wrote while you were away cannot be loaded right now.",
  advice: "Keep writing: it is tried again, and what is missing comes by itself.",
  action: undefined,
};

const STATES: Readonly<Record<State, { readonly remark: (facts: Facts) => Remark; readonly notice: Notice | undefined }>> = {
  "closed": { remark: () => ({ tone: "trouble", text: "Disconnected" }), notice: CLOSED },
  "cut-off": { remark: () => NOT_SAVED, notice: CUT_OFF },
  "opening": { remark: () => OPENING, notice: undefined },
  "opening-late": { remark: () => OPENING, notice: UNREACHABLE },
  "opening-full": { remark: () => OPENING, notice: FULL },
  "opening-unavailable": { remark: () => OPENING, notice: UNAVAILABLE },
  "opening-unreadable": { remark: () => OPENING, notice: UNREADABLE },
  "full": { remark: waiting, notice: { ...FULL, advice: KEEP_OPEN } },
  "unavailable": { remark: waiting, notice: { ...UNAVAILABLE, advice: KEEP_OPEN } },
  "offline": { remark: offline, notice: OFFLINE },
  "offline-in-tab": { remark: offline, notice: OFFLINE_IN_TAB },
  "rights-taken": { remark: () => NOT_SAVED, notice: RIGHTS_TAKEN },
  "degraded": { remark: withTroubleBehind, notice: DEGRADED },
  "reading": { remark: () => READ_ONLY, notice: READING },
  "lacking": { remark: ({ mayWrite, saved }) => (!mayWrite ? READ_ONLY : saved ? SAVED : SAVING), notice: LACKING },
  "too-large": { remark: savedOr(NOT_SAVED), notice: TOO_LARGE },
  "stalled": { remark: savedOr(NOT_SAVED), notice: STALLED },
  "slow": { remark: savedOr(SAVING), notice: SLOW },
  "well": { remark: savedOr(SAVING), notice: undefined },
};

function edits(count: number): string {
  return count === 1 ? "1 edit" : `${count.toLocaleString("en")} edits`;
}
