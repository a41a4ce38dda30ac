/** Texts of the notice under the bar: the problem, and the remedy. */

export type PageNotice = {
  readonly tone: "calm" | "warning" | "error";
  readonly title: string;
  readonly advice: string;
  readonly action?: NoticeAction;
};
export type NoticeAction = "copy-text" | "reload";

const OFFLINE: PageNotice = {
  tone: "warning",
  title: "You are offline.",
  advice: "Keep writing. Your edits are kept on this device and sent when the connection is back.",
};

const FULL: PageNotice = {
  tone: "warning",
  title: "This document is full: it has reached its maximum number of people.",
  advice: "The page retries automatically and opens the document after somebody leaves.",
};

const UNAVAILABLE: PageNotice = {
  tone: "warning",
  title: "The document is not available right now.",
  advice: "The page retries automatically and opens the document as soon as it is available.",
};

const DELETED: PageNotice = {
  tone: "error",
  title: "This document was deleted.",
  advice: "Nobody can open it again, and its link no longer works.",
};

const KEEP_OPEN = "Keep writing and keep this tab open. The page retries automatically and then sends your edits.";

/** Notices by the state that `status.ts` finds. */
const BY_STATE = {
  "closed": {
    tone: "error",
    title: "The server closed your connection to this document.",
    advice: "Reload the page. If that does not help, ask for a new link.",
    action: "reload",
  },
  "cut-off": {
    tone: "error",
    title: "Your last edits could not be saved.",
    advice: "The server closed the connection permanently. Copy your text before you reload the page.",
    action: "copy-text",
  },
  "deleted": {
    ...DELETED,
    advice: "Nobody can open it again. The text that you see exists only in this tab: copy it if you need it.",
    action: "copy-text",
  },
  "opening": undefined,
  "opening-deleted": DELETED,
  "opening-late": {
    tone: "warning",
    title: "The page cannot reach the document.",
    advice: "The page opens the document automatically when the connection is back.",
  },
  "opening-full": FULL,
  "opening-unavailable": UNAVAILABLE,
  "opening-unreadable": {
    tone: "warning",
    title: "The document cannot be loaded right now.",
    advice: "You are connected, but the server cannot load the content. The page retries automatically and then opens the document.",
  },
  "full": { ...FULL, advice: KEEP_OPEN },
  "unavailable": { ...UNAVAILABLE, advice: KEEP_OPEN },
  "offline": OFFLINE,
  "offline-in-tab": {
    ...OFFLINE,
    advice: "Keep writing and keep this tab open. Your edits are kept only in this tab and sent when the connection is back.",
  },
  "rights-taken": {
    tone: "error",
    title: "Your last edits are not saved.",
    advice: "You now have read access only. Copy your text, or ask for write access: the page then sends your edits.",
    action: "copy-text",
  },
  "degraded": {
    tone: "warning",
    title: "The server has a problem.",
    advice: "Keep writing. Your edits are kept and reach other people when the problem is solved.",
  },
  "reading": {
    tone: "calm",
    title: "You have read access only.",
    advice: "You see the changes of other people as they make them. To write, ask for a link with write access.",
  },
  "lacking": {
    tone: "warning",
    title: "The page cannot load the changes that others made while you were away.",
    advice: "Keep writing. The page retries automatically and adds the missing changes.",
  },
  "too-large": {
    tone: "error",
    title: "Your last change is too large to save.",
    advice: "Undo it and paste it in smaller pieces. Your later edits are saved only after that.",
    action: "copy-text",
  },
  "stalled": {
    tone: "error",
    title: "The server cannot save edits right now.",
    advice: "Your edits are still in this tab. The page sends them again when saving works. Keep the tab open, or copy your text.",
    action: "copy-text",
  },
  "slow": {
    tone: "calm",
    title: "Saving takes longer than usual.",
    advice: "Keep writing, and keep this tab open until the page shows Saved.",
  },
  "well": undefined,
} as const satisfies Readonly<Record<string, PageNotice | undefined>>;

export type PageState = keyof typeof BY_STATE;
export const NOTICES: Readonly<Record<PageState, PageNotice | undefined>> = BY_STATE;
