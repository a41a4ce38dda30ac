/**
 * What the page says about its connection, in words: facts in, sentences out. It never says "Saved" of
 * something that is not, and whatever is wrong comes with what the reader can do about it.
 */

import type { SavingState, Status } from "@coroom/client";

export type Facts = {
  readonly status: Status;
  /** The document has been here whole, at least once. */
  readonly loaded: boolean;
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

/** The few words in the bar. */
export function saveRemark({ status, loaded, saving, mayWrite, saved, unsavedEdits, tooLarge }: Facts): Remark {
  if (status === "stopped") return { tone: "trouble", text: saved ? "Disconnected" : "Not saved" };
  if (!loaded) return { tone: "busy", text: "Opening…" };
  if (!isOnline(status)) return { tone: "warning", text: unsavedEdits > 0 ? `Offline, ${edits(unsavedEdits)} kept here` : "Offline" };
  if (!mayWrite) return unsavedEdits > 0 ? { tone: "trouble", text: "Not saved" } : { tone: "calm", text: "Read only" };
  if (saved) return status === "connected" ? { tone: "good", text: "Saved" } : { tone: "warning", text: "Waiting…" };
  if (tooLarge || saving === "refusing") return { tone: "trouble", text: "Not saved" };
  return { tone: "busy", text: "Saving…" };
}

/** The connection alone. */
export function statusRemark(status: Status): Remark {
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
export function noticeFor({ status, loaded, saving, mayWrite, saved, unsavedEdits, keptHere, tooLarge }: Facts): Notice | undefined {
  if (status === "stopped") return saved ? CLOSED : CUT_OFF;
  if (!loaded) return status === "waiting" ? UNREACHABLE : undefined;
  if (!isOnline(status)) return keptHere ? OFFLINE : OFFLINE_IN_TAB;
  if (!mayWrite && unsavedEdits > 0) return RIGHTS_TAKEN;
  if (status !== "connected") return DEGRADED;
  if (!mayWrite) return READ_ONLY;
  if (tooLarge) return TOO_LARGE;
  if (saving === "refusing") return STALLED;
  if (saving === "saving") return SLOW;
  return undefined;
}

function isOnline(status: string): boolean {
  return status === "connected" || status === "degraded";
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

const READ_ONLY: Notice = {
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

function edits(count: number): string {
  return count === 1 ? "1 edit" : `${count.toLocaleString("en")} edits`;
}
