import { expect, test } from "vitest";

import type { RoomKey, UnixMillis } from "../../shared/ids.ts";
import { ALL_TIME, type Window, windowAt } from "../boards/windows.ts";
import { Totals } from "./totals-host.ts";

const HOUR = windowAt("hour", Date.UTC(2026, 6, 1, 12) as UnixMillis);

/** Each telling is under way until the test ends it. */
function begin() {
  const tellings: { readonly windows: readonly Window[]; readonly end: (failure?: Error) => void }[] = [];
  const tell = (_room: RoomKey, windows: readonly Window[]) =>
    new Promise<void>((resolve, reject) =>
      tellings.push({ windows, end: (failure) => (failure === undefined ? resolve() : reject(failure)) }),
    );
  return { totals: new Totals("acme.notes" as RoomKey, { tell }), tellings };
}
const turn = () => new Promise((resolve) => setImmediate(resolve));

test("[TOT1] whoever tells a room's totals has told what another was telling, and until then they are not told", async () => {
  const { totals, tellings } = begin();
  const ended: string[] = [];
  totals.receive(HOUR);
  const first = totals.tell().then(() => ended.push("first"));
  const second = totals.tell().then(() => ended.push("second"));
  await turn();
  expect([tellings.map(({ windows }) => windows), ended, totals.areTold]).toEqual([[[HOUR]], [], false]);
  tellings[0]!.end();
  await turn();
  expect(tellings.map(({ windows }) => windows)).toEqual([[HOUR], []]);
  tellings[1]!.end();
  await Promise.all([first, second]);
  expect([ended, totals.areTold]).toEqual([["first", "second"], true]);
});

test("[TOT2] what could not be told is told again, with what came meanwhile", async () => {
  const { totals, tellings } = begin();
  totals.receive(HOUR);
  const failed = expect(totals.tell()).rejects.toThrow("Redis is away");
  await turn();
  totals.receive(ALL_TIME);
  tellings[0]!.end(new Error("Redis is away"));
  await failed;
  expect(totals.areTold).toBe(false);
  const again = totals.tell();
  await turn();
  expect(tellings[1]!.windows.map(({ id }) => id).sort()).toEqual([HOUR.id, ALL_TIME.id].sort());
  tellings[1]!.end();
  await again;
  expect(totals.areTold).toBe(true);
});
