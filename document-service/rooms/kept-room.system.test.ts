/**
 * One room with its snapshots and history in each of the real stores: what survives a crash at any step, and its
 * history.
 */

import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { OBJECT_STORES, type ObjectStoreCase, START_MS_MAX } from "../../test/contract/object-store-cases.ts";
import { afterCrash, CRASHES, NOTHING_LOST } from "../testing/crash.ts";
import { Stores } from "../testing/one-room.ts";
import { readBackSession } from "../testing/recorded-session.ts";

/** The complete session, in memory, is PST1's. This beginning has as many parts of its history, each a third as large. */
const SESSION = { everySeqs: 1_999, savedEverySeqs: 1_000, editsMax: 9_000, versionEditsMax: 1_000, segmentBytesMax: 50_000 };

describe.each(OBJECT_STORES)("a room stored in %s", (_, start) => {
  let running: ObjectStoreCase;
  beforeAll(async () => {
    running = await start();
  }, START_MS_MAX);
  afterAll(() => running?.stop());

  test.each(CRASHES)(
    "[KRM1] a service that dies $when the step '$step' leaves the complete document and history to the next one",
    async (crash) => {
      expect(await afterCrash(new Stores(await running.open()), crash)).toEqual(NOTHING_LOST);
    },
  );

  test("[KRM2] any seq of a recorded session reads back as the session's text at that seq", async () => {
    const { counts, wrong } = await readBackSession(new Stores(await running.open()), SESSION);
    expect(Math.min(...Object.values(counts))).toBeGreaterThan(3);
    expect(wrong).toEqual([]);
  });
});
