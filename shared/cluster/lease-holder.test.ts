import { expect, test } from "vitest";

import type { Millis } from "../ids.ts";
import { FakeClock } from "../testing/fake-clock.ts";
import { SILENT_LOG } from "../testing/silent-log.ts";
import { LeaseHolder } from "./lease-holder.ts";
import type { Leases } from "./lease.ts";

/** Leases in a store that stops answering writes when the test decides. */
function storedLeases() {
  let revision = 0;
  const store = { answers: true };
  const leases: Leases = {
    read: async () => ({ lease: undefined, revision }),
    write: () => (store.answers ? Promise.resolve({ kind: "written", revision: ++revision }) : new Promise(() => {})),
  };
  return { leases, store };
}

test("[LSE4] a stop waits at most one second for a lease that the store does not write", async () => {
  const clock = new FakeClock();
  const { leases, store } = storedLeases();
  const lease = new LeaseHolder(0, leases, { holder: "me", leaseMs: 4_000 }, { clock, log: SILENT_LOG });
  const stopping = new AbortController();
  const facts = await lease.take(stopping.signal);
  let ended = false;
  const held = lease.renewUntilLost(() => facts!, stopping.signal).then(() => lease.giveBack(facts!)).then(() => (ended = true)); // prettier-ignore
  await clock.advance(1_000 as Millis);
  expect(lease.isConfirmed).toBe(true);
  store.answers = false;
  await clock.advance(1_000 as Millis);
  expect([lease.isHeld, lease.isConfirmed]).toEqual([true, false]);
  stopping.abort();
  await clock.advance(1_999 as Millis);
  expect(ended).toBe(false);
  await clock.advance(1 as Millis); // One second for the renewal in progress, and one to release the lease.
  await held;
  expect(lease.isHeld).toBe(false);
});

test("[LSE5] a lease is not taken for the time in which the store could not be read", async () => {
  const clock = new FakeClock();
  const store = { answers: true };
  const writes: string[] = [];
  const leases: Leases = {
    read: async () => {
      if (!store.answers) throw new Error("no answer");
      return { lease: { holder: "other", floor: 7 }, revision: 3 };
    },
    write: async (_, { holder }) => (writes.push(holder), { kind: "written", revision: 4 }),
  };
  const stopping = new AbortController();
  const taken = new LeaseHolder(0, leases, { holder: "me", leaseMs: 4_000 }, { clock, log: SILENT_LOG }).take(stopping.signal);
  await clock.advance(1_500 as Millis);
  store.answers = false;
  await clock.advance(10_000 as Millis);
  store.answers = true;
  await clock.advance(3_500 as Millis);
  expect(writes).toEqual([]);
  await clock.advance(3_000 as Millis);
  expect([writes, await taken]).toEqual([["me"], { floor: 7, said: undefined, last: undefined }]);
});
