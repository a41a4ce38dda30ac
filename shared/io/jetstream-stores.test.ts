import { JetStreamApiError } from "@nats-io/jetstream";
import { TimeoutError } from "nats";
import { expect, test } from "vitest";

import { StartError } from "../process/lifecycle.ts";
import { SettingError } from "../settings/settings.ts";
import { FakeClock } from "../testing/fake-clock.ts";
import { replaceEntry, retryUntilSettled, startFailure } from "./jetstream-stores.ts";

const refused = (code: number) => new JetStreamApiError({ code: 400, err_code: code, description: `error ${code}` });

test.each([
  ["no server for a copy yet: one has just come", refused(10_005)],
  ["temporarily unavailable", refused(10_008)],
  ["not found, though just made", refused(10_059)],
  ["no answer", new TimeoutError()],
])("[COP4] a request that failed temporarily is repeated: %s", async (_, error) => {
  const outcomes = [() => Promise.reject(error), () => Promise.resolve("made")];
  expect(await retryUntilSettled(() => outcomes.shift()!())).toBe("made");
});

test("[COP4] a permanent failure is reported at once", async () => {
  const outcomes = [() => Promise.reject(refused(10_058)), () => Promise.resolve("made")];
  await expect(retryUntilSettled(() => outcomes.shift()!())).rejects.toThrow("error 10058");
});

test("[COP5] too many replicas for the servers, and NATS without JetStream, are reported with the setting to change", async () => {
  const ofCopies = retryUntilSettled(() => Promise.reject(refused(10_074)));
  await expect(ofCopies).rejects.toThrow(SettingError);
  await expect(ofCopies).rejects.toThrow(/^COROOM_LOG_REPLICAS .*Set it to 1 for a single server/);
  const without = retryUntilSettled(() =>
    Promise.reject(Object.assign(new Error("jetstream is not enabled"), { name: "JetStreamNotEnabled" })),
  );
  await expect(without).rejects.toThrow(StartError);
  await expect(without).rejects.toThrow(/start it with -js/);
});

test.each([10_023, 10_047, 10_077])(
  "[COP7] a start that JetStream refuses for lack of storage (%i) is repeated for 20 s, and then names the disk",
  async (code) => {
    const clock = new FakeClock();
    let isFull = true;
    const start = () => retryUntilSettled(() => (isFull ? Promise.reject(refused(code)) : Promise.resolve("made")), clock);
    const made = start();
    await clock.advance(19_000);
    isFull = false;
    await clock.advance(1_000);
    expect(await made, "another process reserved all storage until now").toBe("made");

    isFull = true;
    const full = start().catch((error: unknown) => error);
    await clock.advance(30_000);
    expect(await full).toBeInstanceOf(StartError);
    expect(((await full) as StartError).message).toMatch(/JetStream has no storage left .*Free space on the disks/);
  },
);

test("[COP7] a stream that nats-server cannot create in its folder, as on a full disk, is an error that names the disk", async () => {
  const failed = retryUntilSettled(() => Promise.reject(refused(10_049)));
  await expect(failed).rejects.toThrow(StartError);
  await expect(failed).rejects.toThrow(/cannot create a stream .*Free space on its disk/);
});

test("[COP10] a process that NATS did not answer at its start ends with a message that names the remedy", () => {
  for (const error of [new TimeoutError(), refused(10_008)]) {
    const failure = startFailure(error);
    expect(failure).toBeInstanceOf(StartError);
    expect((failure as StartError).message).toMatch(/did not answer in time .*Check that a majority of the nats-servers run/);
  }
  const other = new Error("a defect");
  expect(startFailure(other)).toBe(other);
});

/** A bucket whose only entry is read as given, whichever revision a write was to replace. */
function refusing(found: { revision: number; text: string } | null): Parameters<typeof replaceEntry>[0] {
  const entry = found && { revision: found.revision, value: Buffer.from(found.text) };
  return { put: () => Promise.reject(refused(10_071)), get: () => Promise.resolve(entry as never) };
}

test("[COP8] a refused write counts as an own earlier one only by a later entry, for a former leader answers with an older one", async () => {
  const replace = (found: { revision: number; text: string } | null) =>
    replaceEntry(refusing(found), "key", Buffer.from("ours"), 5, ({ value }) => Buffer.from(value).toString() === "ours");
  expect(await replace({ revision: 6, text: "ours" })).toEqual({ kind: "written", revision: 6 });
  expect(await replace({ revision: 6, text: "theirs" })).toEqual({ kind: "superseded", isReplaced: true });
  // The entry that was to be replaced may have the same bytes, as when a sweep writes an entry again.
  expect(await replace({ revision: 5, text: "ours" })).toEqual({ kind: "superseded", isReplaced: false });
  expect(await replace({ revision: 4, text: "theirs" })).toEqual({ kind: "superseded", isReplaced: false });
  expect(await replace(null)).toEqual({ kind: "superseded", isReplaced: false });
});
