/** One room whose snapshots and history lie in each of the real stores: what it keeps, whatever step is its service's last, and its past. */

import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { OBJECT_STORES, type ObjectStoreCase, START_MS_MAX } from "../../test/contract/object-store-cases.ts";
import { afterCrash, CRASHES, NOTHING_LOST } from "../testing/crash.ts";
import { Stores } from "../testing/one-room.ts";
import { readBackSession } from "../testing/recorded-session.ts";

describe.each(OBJECT_STORES)("a room kept in %s", (_, start) => {
  let running: ObjectStoreCase;
  beforeAll(async () => {
    running = await start();
  }, START_MS_MAX);
  afterAll(() => running?.stop());

  test.each(CRASHES)(
    "[KRM1] a service that dies $when the step '$step' leaves a whole document to the next, and all of its past",
    async (crash) => {
      expect(await afterCrash(new Stores(await running.open()), crash)).toEqual(NOTHING_LOST);
    },
  );

  test("[KRM2] any seq of a recorded session, read back, is the text that the session had there", async () => {
    const { counts, wrong } = await readBackSession(new Stores(await running.open()), { everySeqs: 1_999, savedEverySeqs: 3_000 });
    expect(Math.min(...Object.values(counts))).toBeGreaterThan(3);
    expect(wrong).toEqual([]);
  });
});
