/** What the page says under its bar in each state that deserves a sentence: what is wrong, and what the reader can do about it. */

export type Notice = {
  readonly tone: "calm" | "warning" | "trouble";
  readonly title: string;
  readonly advice: string;
  readonly action?: Action;
};
export type Action = "copy-text" | "reload";

const OFFLINE: Notice = {
  tone: "warning",
  title: "You are offline.",
  advice: "Keep writing: it is kept on this device, and sent when the connection is back.",
};

const FULL: Notice = {
  tone: "warning",
  title: "The document is full: as many people are in it as may be.",
  advice: "It opens here by itself once somebody leaves: it is tried again and again.",
};

const UNAVAILABLE: Notice = {
  tone: "warning",
  title: "The document is not available right now.",
  advice: "It opens here by itself as soon as it is: it is tried again and again.",
};

const DELETED: Notice = {
  tone: "trouble",
  title: "This document was deleted.",
  advice: "It is gone for everybody, and its link leads nowhere any more.",
};

const KEEP_OPEN = "Keep writing, and leave this tab open: it is tried again and again, and what you write is sent then.";

/** By the state that `status.ts` finds. */
const BY_STATE = {
  "closed": {
    tone: "trouble",
    title: "This document is closed to you.",
    advice: "Load the page again; if that does not help, ask for a new link.",
    action: "reload",
  },
  "cut-off": {
    tone: "trouble",
    title: "Your last edits could not be saved.",
    advice: "The connection was closed for good. Take a copy of your text before you load the page again.",
    action: "copy-text",
  },
  "deleted": {
    ...DELETED,
    advice: "It is gone for everybody: what you see is in this tab alone. Take a copy if you need it.",
    action: "copy-text",
  },
  "opening": undefined,
  "opening-deleted": DELETED,
  "opening-late": {
    tone: "warning",
    title: "The document cannot be reached.",
    advice: "It opens here by itself as soon as there is a connection.",
  },
  "opening-full": FULL,
  "opening-unavailable": UNAVAILABLE,
  "opening-unreadable": {
    tone: "warning",
    title: "The document cannot be loaded right now.",
    advice: "You are connected, but its content is missing. It is tried again, and opens here by itself.",
  },
  "full": { ...FULL, advice: KEEP_OPEN },
  "unavailable": { ...UNAVAILABLE, advice: KEEP_OPEN },
  "offline": OFFLINE,
  "offline-in-tab": {
    ...OFFLINE,
    advice: "Keep writing, and leave this tab open: what you write is kept in it, and sent when the connection is back.",
  },
  "rights-taken": {
    tone: "trouble",
    title: "Your last edits are not saved.",
    advice: "You may only read here now. Take a copy of your text, or ask for the right to write: then they are sent.",
    action: "copy-text",
  },
  "degraded": {
    tone: "warning",
    title: "The server has trouble.",
    advice: "Keep writing: it is kept, and reaches the others when the trouble is over.",
  },
  "reading": {
    tone: "calm",
    title: "You are reading along.",
    advice: "Changes by others appear as they are made. To write, ask for a link that allows it.",
  },
  "lacking": {
    tone: "warning",
    title: "What others wrote while you were away cannot be loaded right now.",
    advice: "Keep writing: it is tried again, and what is missing comes by itself.",
  },
  "too-large": {
    tone: "trouble",
    title: "Your last change is too large to be saved.",
    advice: "Undo it, and paste it in smaller pieces. What you write after it waits for that.",
    action: "copy-text",
  },
  "stalled": {
    tone: "trouble",
    title: "Nothing can be saved right now.",
    advice: "What you wrote is still in this tab, and it is sent again as soon as saving works. Keep the tab open, or take a copy.",
    action: "copy-text",
  },
  "slow": {
    tone: "calm",
    title: "Saving takes longer than usual.",
    advice: "Keep writing, and leave this tab open until it says Saved.",
  },
  "well": undefined,
} as const satisfies Readonly<Record<string, Notice | undefined>>;

export type State = keyof typeof BY_STATE;
export const NOTICES: Readonly<Record<State, Notice | undefined>> = BY_STATE;
