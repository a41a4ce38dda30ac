import { expect, test } from "vitest";

import type { Millis } from "../../shared/ids.ts";
import { EditSendRate } from "./client-rates.ts";

const LIMITS = { editBurst: 30, editsPerSecond: 10, editBytesMax: 500, bytesBurst: 2_000, bytesPerSecond: 1_000 };
const at = (ms: number): Millis => (1_000_000 + ms) as Millis;

/** All that was sent so far has arrived, and is known to have. */
function arriveAll(pace: EditSendRate, ms: number): void {
  pace.markAsked();
  pace.receiveArrival(at(ms));
}

/** When edits go out if there is always one waiting, over a network that takes no time. */
function sendTimes(pace: EditSendRate, untilMs: number): number[] {
  const times: number[] = [];
  for (let ms = 0; ms <= untilMs; ms++) {
    while (pace.take(at(ms))) times.push(ms);
    arriveAll(pace, ms);
  }
  return times;
}

test("[PAC1] an idle client's edits go out at once, a busy client's below the limit", () => {
  const times = sendTimes(new EditSendRate(LIMITS, at(0)), 60_000);
  expect(times.filter((ms) => ms === 0)).toHaveLength(21);
  expect(times.length).toBeLessThan(21 + 9 * 60 + 1);
});

test("[PAC2] the server's bucket never runs empty, even when the network delays edits by up to a second", () => {
  const times = sendTimes(new EditSendRate(LIMITS, at(0)), 30_000).map((ms) => (ms % 3_000 < 1_000 ? ms - (ms % 3_000) + 1_000 : ms));
  let tokens = LIMITS.editBurst;
  let filledAt = 0;
  for (const ms of times) {
    tokens = Math.min(LIMITS.editBurst, tokens + ((ms - filledAt) * LIMITS.editsPerSecond) / 1000) - 1;
    filledAt = ms;
    expect(tokens).toBeGreaterThanOrEqual(0);
  }
});

test("[PAC1] the limiter returns when the next edit may be sent", () => {
  const pace = new EditSendRate(LIMITS, at(0));
  expect(pace.nextAt(at(0))).toBe(at(0));
  for (let sent = 0; sent < 21; sent++) pace.take(at(0));
  arriveAll(pace, 0);
  const next = pace.nextAt(at(0));
  expect(pace.take((next - 1) as Millis)).toBe(false);
  expect(pace.take(next)).toBe(true);
});

test("[PAC2] a clock that jumps ahead allows one burst at most", () => {
  const pace = new EditSendRate(LIMITS, at(0));
  while (pace.take(at(0)));
  while (pace.take(at(-5_000)));
  arriveAll(pace, -5_000);
  let sent = 0;
  while (pace.take(at(1e9))) sent += 1;
  expect(sent).toBe(21);
});

test("[PAC3] large edits go out below the byte rate, even when they are few", () => {
  const pace = new EditSendRate(LIMITS, at(0));
  let [left, filledAt, sent] = [LIMITS.bytesBurst, 0, 0];
  for (let ms = 0; ms <= 30_000; ms++) {
    while (pace.take(at(ms))) {
      const bytes = sent % 3 === 0 ? LIMITS.editBytesMax : 100;
      pace.spend(bytes, at(ms));
      left = Math.min(LIMITS.bytesBurst, left + ((ms - filledAt) * LIMITS.bytesPerSecond) / 1000) - bytes;
      filledAt = ms;
      sent += 1;
      expect(left).toBeGreaterThanOrEqual(0);
    }
    arriveAll(pace, ms);
  }
  expect(sent).toBeGreaterThan(100);
});

test("[PAC3] the limiter returns when an edit that waits for bytes may be sent", () => {
  const pace = new EditSendRate(LIMITS, at(0));
  while (pace.take(at(0))) pace.spend(LIMITS.editBytesMax, at(0));
  arriveAll(pace, 0);
  const next = pace.nextAt(at(0));
  expect(next).toBeGreaterThan(at(0));
  expect(pace.take((next - 1) as Millis)).toBe(false);
  expect(pace.take(next)).toBe(true);
});

test("[PAC4] unconfirmed edits and the edits that may be sent now are one burst together, whatever the network delay", () => {
  const pace = new EditSendRate(LIMITS, at(0));
  while (pace.take(at(0)));
  pace.markAsked();
  let [sent, looked] = [0, 0];
  for (let now = at(0); now < at(75_000); now = pace.nextAt(now), looked++) if (pace.take(now)) sent += 1;
  expect([sent, looked > 1_000]).toEqual([0, false]);
  pace.receiveArrival(at(75_000)); // It fills from now on, as the server's does.
  expect(pace.take(at(75_000))).toBe(false);
  expect(pace.take(at(75_112))).toBe(true);
});

test("[PAC4] unconfirmed bytes and the bytes that may be sent now are one burst together", () => {
  const pace = new EditSendRate(LIMITS, at(0));
  let bytes = 0;
  for (let ms = 0; ms <= 75_000; ms += 100) {
    while (pace.take(at(ms))) {
      bytes += 250;
      pace.spend(250, at(ms));
    }
  }
  expect(bytes).toBeLessThanOrEqual(LIMITS.bytesBurst);
});
