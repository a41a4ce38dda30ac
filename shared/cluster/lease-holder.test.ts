import { expect, test } from "vitest";

import type { Millis } from "../ids.ts";
import { FakeClock } from "../testing/fake-clock.ts";
import { SILENT_LOG } from "../testing/silent-log.ts";
import { LeaseHolder } from "./lease-holder.ts";
import type { Lease, Leases } from "./lease.ts";

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
  expect(facts).toEqual({ floor: 0, said: undefined, last: undefined });
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

/** One partition's lease in a store that replaces exactly the revision that a write names. */
function replacingLeases(lease: Lease) {
  const store = { lease, revision: 3, writes: 0 };
  const leases: Leases = {
    read: async (partition) => (expect(partition).toBe(5), { lease: store.lease, revision: store.revision }),
    write: async (partition, written, revision) => {
      expect(partition).toBe(5);
      store.writes += 1;
      if (revision !== store.revision) return { kind: "superseded" };
      Object.assign(store, { lease: written, revision: revision + 1 });
      return { kind: "written", revision: store.revision };
    },
  };
  return { leases, store };
}

test("[LSE6] a holder keeps its predecessor's facts, then stores its own, and writes nothing once another process has the lease", async () => {
  const clock = new FakeClock();
  const signal = new AbortController().signal;
  const last = { streamSeq: 9, id: "s.1" };
  const { leases, store } = replacingLeases({ holder: "", floor: 7, last });
  const lease = new LeaseHolder(5, leases, { holder: "me", leaseMs: 4_000 }, { clock, log: SILENT_LOG });
  expect(lease.isConfirmed).toBe(false);
  expect(await lease.take(signal)).toEqual({ floor: 7, said: undefined, last });
  expect(store.lease).toEqual({ holder: "me", floor: 7, said: undefined, last });
  const said = { service: "me", number: 1 };
  let isLost = false;
  const renewing = lease.renewUntilLost(() => ({ floor: 8, said }), signal).then(() => (isLost = true));
  await clock.advance(1_000 as Millis);
  expect([store.lease, lease.isConfirmed, isLost]).toEqual([{ holder: "me", floor: 8, said }, true, false]);
  Object.assign(store, { lease: { holder: "other", floor: 8 }, revision: store.revision + 1 });
  await clock.advance(1_000 as Millis);
  await renewing;
  expect([lease.isHeld, isLost, store.writes]).toEqual([false, true, 3]);
  await lease.giveBack({ floor: 9 });
  expect([store.lease.holder, store.writes]).toEqual(["other", 3]);
});

test("[LSE7] a process that stops renews nothing more, and another process takes the released lease with its facts at its next look", async () => {
  const clock = new FakeClock();
  const stopping = new AbortController();
  const { leases, store } = replacingLeases({ holder: "", floor: 0 });
  const [lease, next] = ["me", "next"].map(
    (holder) => new LeaseHolder(5, leases, { holder, leaseMs: 4_000 }, { clock, log: SILENT_LOG }),
  ) as [LeaseHolder, LeaseHolder];
  await lease.take(stopping.signal);
  const taking = next.take(new AbortController().signal);
  const renewing = lease.renewUntilLost(() => ({ floor: 1 }), stopping.signal);
  await clock.advance(500 as Millis);
  stopping.abort();
  await renewing;
  expect(store.writes).toBe(1);
  await lease.giveBack({ floor: 2 });
  expect(store.lease).toEqual({ holder: "", floor: 2 });
  await clock.advance(500 as Millis);
  expect(await taking).toEqual({ floor: 2, said: undefined, last: undefined });
});
