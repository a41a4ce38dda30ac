import { expect, test } from "vitest";

import type { Status } from "@coroom/client";

import { type PageFacts, noticeFor, saveRemark, statusRemark } from "./status.ts";

const WELL: PageFacts = {
  status: "connected",
  loaded: true,
  putOff: undefined,
  deleted: false,
  lacksContent: false,
  saving: "saved",
  mayWrite: true,
  saved: true,
  unsavedEdits: 0,
  keptHere: true,
  tooLarge: false,
  seq: 7,
  lastSaveMs: 12,
};

/** All other facts are good. */
function having(facts: Partial<PageFacts>): PageFacts {
  return { ...WELL, saved: (facts.unsavedEdits ?? 0) === 0, ...facts };
}

const EVERY: readonly PageFacts[] = (["disconnected", "connecting", "connected", "degraded", "waiting", "stopped"] as Status[]).flatMap(
  (status) =>
    [true, false].flatMap((loaded) =>
      (["saved", "saving", "refusing"] as const).flatMap((saving) =>
        [true, false].flatMap((mayWrite) =>
          [
            [true, 0],
            [false, 0],
            [false, 3],
          ].flatMap(([saved, unsavedEdits]) =>
            [true, false].flatMap((tooLarge) =>
              [true, false].flatMap((lacksContent) =>
                (status === "waiting" ? [undefined, "room-full", "unavailable"] : [undefined]).map(
                  (putOff) =>
                    ({ ...WELL, status, loaded, putOff, lacksContent, saving, mayWrite, saved, unsavedEdits, tooLarge }) as PageFacts,
                ),
              ),
            ),
          ),
        ),
      ),
    ),
);

test("[PAGE8] the page shows Saved only for a loaded, connected document without unsaved edits", () => {
  for (const facts of EVERY) {
    if (saveRemark(facts).text === "Saved")
      expect(facts).toMatchObject({ status: "connected", loaded: true, saved: true, unsavedEdits: 0 });
  }
});

test("[PAGE8] the page shows only Saved when everything is good", () => {
  expect(saveRemark(WELL)).toEqual({ tone: "good", text: "Saved" });
  expect(noticeFor(WELL)).toBeUndefined();
});

test.each([
  [{ unsavedEdits: 1 }, "Saving…"],
  [{ saving: "saving", unsavedEdits: 4 }, "Saving…"],
  [{ saving: "refusing", unsavedEdits: 4 }, "Not saved"],
  [{ status: "waiting" }, "Offline"],
  [{ status: "waiting", unsavedEdits: 1 }, "Offline, 1 edit kept here"],
  [{ status: "connecting", unsavedEdits: 1200 }, "Offline, 1,200 edits kept here"],
  [{ status: "connecting", loaded: false }, "Opening…"],
  [{ status: "stopped", unsavedEdits: 2 }, "Not saved"],
  [{ tooLarge: true, unsavedEdits: 2 }, "Not saved"],
  [{ mayWrite: false }, "Read only"],
  [{ mayWrite: false, unsavedEdits: 2 }, "Not saved"],
  [{ saved: false }, "Saving…"],
] as const)("[PAGE8] %o reads: %s", (facts, text) => {
  expect(saveRemark(having(facts)).text).toBe(text);
});

test("[PAGE9] every problem comes with advice", () => {
  for (const facts of EVERY) {
    const wrong = ["warning", "error"].includes(saveRemark(facts).tone) || facts.status === "waiting";
    if (wrong) expect(noticeFor(facts)?.advice).toMatch(/^[A-Z].*\.$/);
  }
});

test("[PAGE9] a first connection attempt is not a problem; a lost connection is", () => {
  expect(noticeFor(having({ status: "connecting", loaded: false }))).toBeUndefined();
  expect(noticeFor(having({ status: "connecting" }))?.title).toBe("You are offline.");
});

test("[PAGE39] the page explains that a document rejects people or cannot be loaded", () => {
  const closed = { status: "waiting", loaded: false } as const;
  expect(noticeFor(having({ ...closed, putOff: "room-full" }))?.title).toContain("full");
  expect(noticeFor(having({ ...closed, putOff: "unavailable" }))?.title).toBe("The document is not available right now.");
  expect(noticeFor(having({ ...closed, putOff: "tenant-rooms" }))?.title).toBe("The document is not available right now.");
  expect(noticeFor(having({ loaded: false, lacksContent: true }))?.title).toBe("The document cannot be loaded right now.");
  expect(noticeFor(having({ lacksContent: true }))?.advice).toContain("Keep writing");
  expect(statusRemark(having({ ...closed, putOff: "room-full" })).text).toBe("Connected, waiting to join");
});

test("[PAGE39] a person who is rejected after a reconnect keeps writing and sees that the page waits", () => {
  const away = having({ status: "waiting", putOff: "unavailable", unsavedEdits: 2 });
  expect(saveRemark(away).text).toBe("Waiting, 2 edits kept here");
  expect(noticeFor(away)?.advice).toContain("keep this tab open");
});

test("[PAGE41] the page reports a deleted document, and offers a copy while it still shows the text", () => {
  const seen = having({ status: "stopped", deleted: true });
  expect([noticeFor(seen)?.title, noticeFor(seen)?.action, saveRemark(seen).text]).toEqual([
    "This document was deleted.",
    "copy-text",
    "Deleted",
  ]);
  const opened = having({ status: "stopped", loaded: false, deleted: true });
  expect([noticeFor(opened)?.title, noticeFor(opened)?.action]).toEqual(["This document was deleted.", undefined]);
});

test("[PAGE9] an offline page shows where edits are kept", () => {
  expect(noticeFor(having({ status: "waiting", unsavedEdits: 2 }))?.advice).toContain("on this device");
  expect(noticeFor(having({ status: "waiting", unsavedEdits: 2, keptHere: false }))?.advice).toContain("keep this tab open");
});

test("[PAGE9] a person with edits that could not be saved is offered a copy of the text first", () => {
  expect(noticeFor(having({ status: "stopped", unsavedEdits: 2 }))?.action).toBe("copy-text");
  expect(noticeFor(having({ status: "stopped" }))?.action).toBe("reload");
  expect(noticeFor(having({ saving: "refusing", unsavedEdits: 2 }))?.action).toBe("copy-text");
  expect(noticeFor(having({ mayWrite: false, unsavedEdits: 2 }))?.action).toBe("copy-text");
  expect(noticeFor(having({ mayWrite: false }))?.action).toBeUndefined();
});
